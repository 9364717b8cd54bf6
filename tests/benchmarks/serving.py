"""The whole server for benchmarks: `worldsize serve` as a process, on a port and a data folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from app.settings import COURSE_DIR

START_SECONDS = 60.0
STOP_SECONDS = 20.0


@contextmanager
def served(folder: Path, **settings: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address and the process, ready to answer; ended in good order."""
    port = free_port()
    environment = {**os.environ, "WORLDSIZE_DATA_DIR": str(folder / "data"), "WORLDSIZE_PORT": str(port),
                   **{f"WORLDSIZE_{name.upper()}": value for name, value in settings.items()}}
    log = (folder / "serve.log").open("wb")
    with log:
        process = subprocess.Popen([sys.executable, "-m", "app", "serve"], env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until_ready(address)
        yield address, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=STOP_SECONDS)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def wait_until_ready(address: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            if httpx.get(f"{address}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline, "the server did not start"
        time.sleep(0.1)


def lesson_of_one_strategy(folder: Path) -> Path:
    """A folder of lessons with a copy of the flagship whose experiment runs data parallel alone."""
    lesson = folder / "lessons" / "one-strategy"
    shutil.copytree(COURSE_DIR / "split-three-ways", lesson)
    file = lesson / "lesson.yaml"
    text = file.read_text()
    for other in ("tensor_parallel", "pipeline_gpipe"):
        text = text.replace(f"      - strategy: {other}\n", "")
    file.write_text(text)
    entry = "lessons:\n  - {slug: one-strategy, title: One strategy, question: What does one cost, prerequisites: []}\n"
    (lesson.parent / "course.yaml").write_text(entry)
    return lesson.parent
