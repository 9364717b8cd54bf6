"""The web process from outside: it starts, and told to stop it finishes what it has begun."""

from __future__ import annotations

import http.client
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import settings
from tests.ports import free_port
from tests.web.sites import LESSON

START = """
import sys
from pathlib import Path
from app import settings
from app.serve import run_web
settings.COURSE_DIR = Path(sys.argv[2])
run_web(settings.Settings.load(data_dir=Path(sys.argv[1]), port=int(sys.argv[3])))
"""
BODY = b"answer=56&variant=0&submission=one"
PATIENCE = 120  # seconds


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def process(tmp_path: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    """`worldsize web` with a course of which every lesson is still to come but the flagship."""
    course = tmp_path / "course"
    course.mkdir()
    (course / "course.yaml").write_text((settings.COURSE_DIR / "course.yaml").read_text())
    (course / "split-three-ways").symlink_to(settings.COURSE_DIR / "split-three-ways")
    command = [sys.executable, "-c", START, str(tmp_path / "var"), str(course), str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        for line in started.stderr:
            if "Uvicorn running" in line:
                break
        yield started
        if started.poll() is None:
            started.kill()


def test_a_request_under_way_is_answered_before_the_process_ends(process: subprocess.Popen[str], port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.putrequest("POST", f"{LESSON}/checkpoints/eight-gpus")
    connection.putheader("Content-Type", "application/x-www-form-urlencoded")
    connection.putheader("Content-Length", str(len(BODY)))
    connection.endheaders(BODY[:10])
    other = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    other.request("GET", "/healthz")  # by its answer the server has read what was sent before
    assert other.getresponse().read() == b'{"status":"ok"}'
    process.send_signal(signal.SIGTERM)
    connection.send(BODY[10:])
    assert connection.getresponse().status == 303
    connection.close()
    other.close()
    assert process.wait(timeout=PATIENCE) in (0, -signal.SIGTERM)


def test_the_web_process_never_loads_torch_or_font_tools(process: subprocess.Popen[str]) -> None:
    loaded = Path(f"/proc/{process.pid}/maps").read_text()
    assert "torch" not in loaded
    assert "fontTools" not in loaded
