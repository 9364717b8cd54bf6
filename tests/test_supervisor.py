"""Web and worker are kept alive together and end together, however this or that one goes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.runs.store import State
from app.supervisor import (
    BROKEN,
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    REFUSED,
    START_SECONDS,
    STEADY_SECONDS,
    Child,
    _may_live_again,
)
from kernels import processes
from tests.databases import migrated, sqlite_url
from tests.ports import free_port
from tests.runs.asking import ask, spec, wait_for
from tests.runs.traces import wait_until_gone

PATIENCE = 120.0  # seconds for what takes one, on a machine that has other things to do


@contextmanager
def supervised(folder: Path, fault: str = "none") -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.supervised", str(folder), fault]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stderr is not None
        process.stderr.close()


def pids(folder: Path, name: str, count: int) -> list[int]:
    """Of all lives of this child, once there are so many."""
    file, deadline = folder / name, time.monotonic() + PATIENCE
    while not file.exists() or len(file.read_text().split()) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return [int(word) for word in file.read_text().split()]


@pytest.mark.parametrize("name", ["web", "worker"])
def test_a_killed_process_is_back_and_the_other_is_left_alone(tmp_path: Path, name: str) -> None:
    with supervised(tmp_path):
        web, worker = pids(tmp_path, "web", 1), pids(tmp_path, "worker", 1)
        os.kill({"web": web, "worker": worker}[name][0], signal.SIGKILL)
        assert len(pids(tmp_path, name, 2)) == 2
        other = "worker" if name == "web" else "web"
        assert len(pids(tmp_path, other, 1)) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_told_to_stop_it_ends_both_and_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    with supervised(tmp_path) as process:
        both = pids(tmp_path, "web", 1) + pids(tmp_path, "worker", 1)
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
        assert all(wait_until_gone(pid, 0) for pid in both)


def test_killed_itself_it_takes_both_with_it(tmp_path: Path) -> None:
    with supervised(tmp_path) as process:
        both = pids(tmp_path, "web", 1) + pids(tmp_path, "worker", 1)
        process.kill()
        assert all(wait_until_gone(pid, PATIENCE) for pid in both)


def test_a_process_that_does_not_end_is_killed(tmp_path: Path) -> None:
    with supervised(tmp_path, "deaf") as process:
        both = pids(tmp_path, "web", 1) + pids(tmp_path, "worker", 1)
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert all(wait_until_gone(pid, 0) for pid in both)


def test_a_process_that_cannot_start_ends_all_with_its_words(tmp_path: Path) -> None:
    with supervised(tmp_path, "refuses") as process:
        assert process.wait(PATIENCE) == 1
        web = tmp_path / "web"  # which may have been ended before it had written anything
        assert all(wait_until_gone(int(pid), 0) for pid in (web.read_text().split() if web.exists() else ()))
        assert process.stderr is not None
        assert "worldsize: The port is taken." in process.stderr.read()


def test_pauses_grow_with_each_death_and_shrink_after_a_long_life() -> None:
    child = Child("web", lambda: None, lives=2)
    pauses = []
    for _ in range(12):
        child.started = time.monotonic()
        pauses.append(child.pause)
        assert _may_live_again(child, signal.SIGKILL)
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
    child.started = time.monotonic() - 2 * STEADY_SECONDS
    assert _may_live_again(child, signal.SIGKILL)
    assert child.pause == 2 * FIRST_PAUSE_SECONDS  # this death cost the first pause; the next one costs twice as much


def test_only_a_refusal_at_the_first_start_is_final() -> None:
    def lives_on(code: int, *, lives: int = 1, seconds: float = 0.0) -> bool:
        child = Child("web", lambda: None, lives=lives, started=time.monotonic() - seconds)
        return _may_live_again(child, code << 8)  # The status that waitpid gives for this exit code.

    assert not lives_on(REFUSED)
    assert lives_on(REFUSED, lives=2)
    assert lives_on(REFUSED, seconds=2 * START_SECONDS)
    assert lives_on(BROKEN)
    assert lives_on(0)


def test_a_process_that_breaks_shows_where_and_is_started_again(tmp_path: Path) -> None:
    with supervised(tmp_path, "breaks once") as process:
        assert len(pids(tmp_path, "worker", 2)) == 2
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert process.stderr is not None
        assert "ZeroDivisionError" in process.stderr.read()


@pytest.mark.torchrun
def test_the_real_server_answers_and_runs_again_after_everything_was_killed_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    url = sqlite_url(tmp_path)
    with migrated(url) as database:
        asked = ask(database, "ada", spec())
        with served(folder, url) as (first, port):
            until_healthy(port)
            for pid in descendants(first.pid):
                processes.send(pid, signal.SIGKILL)
        with served(folder, url) as (second, port):
            until_healthy(port)
            run = wait_for(database, asked.run_id, State.DONE, seconds=2 * PATIENCE)
            assert [result["verdict"] for result in run.results] == ["equal"]
            below = descendants(second.pid)
            second.terminate()
            assert second.wait(PATIENCE) == 0
            assert all(wait_until_gone(pid, PATIENCE) for pid in below)


@contextmanager
def served(folder: Path, url: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """`worldsize serve` on a free port."""
    port = free_port()
    given = json.dumps({"data_dir": str(folder), "database_url": url, "port": port})
    code = "import json, sys; from app.settings import Settings; from app.supervisor import serve; " \
           "sys.exit(serve(Settings(**json.loads(sys.argv[1]))))"
    with (folder.parent / "serve.log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-c", code, given], stderr=log)
    try:
        yield process, port
    finally:
        process.kill()
        process.wait()


def descendants(pid: int) -> list[int]:
    """The process and all below it."""
    return [pid, *(below for child in processes.children(pid) for below in descendants(child))]


def until_healthy(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE) as answer:
                assert answer.status == 200
                return
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
