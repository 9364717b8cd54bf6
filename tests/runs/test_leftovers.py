"""Twenty runs one after the other leave nothing behind: no file, no descriptor, no process."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from app.runs.store import State
from kernels import processes
from tests.databases import migrated, sqlite_url
from tests.runs.asking import PATIENCE, ask, spec, wait_for
from tests.runs.worker_process import running

pytestmark = [pytest.mark.torchrun, pytest.mark.timeout(900)]
RUNS = 20

Held = tuple[list[int], list[Counter[str]], set[str]]


def held(worker: int, folder: Path) -> Held:
    """The host and what is below it, what worker and host have open, and the files of both."""
    [host] = processes.children(worker)
    return ([host, *processes.children(host)], [descriptors(pid) for pid in (worker, host)],
            {str(path.relative_to(folder)) for path in folder.rglob("*")})


def descriptors(pid: int) -> Counter[str]:
    """How many of each kind; SQLite's journal comes and goes with each transaction."""
    kinds: Counter[str] = Counter()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            target = os.readlink(link)
            if not target.endswith("-journal"):
                kinds[target.partition(":[")[0]] += 1
    return kinds


def test_twenty_runs_leave_nothing_behind(tmp_path: Path) -> None:
    folder, url = tmp_path / "worker", sqlite_url(tmp_path)
    folder.mkdir()
    with migrated(url) as database, running(folder, url, real=True) as worker:

        def carry_out(number: int) -> None:
            assert wait_for(database, ask(database, "ada", spec(number)).run_id, State.DONE, seconds=900).losses == 0

        carry_out(1)
        before = held(worker.pid, folder)
        for number in range(2, RUNS + 2):
            carry_out(number)
        deadline = time.monotonic() + PATIENCE
        while (after := held(worker.pid, folder)) != before:  # The last rank of the last run may still be leaving.
            assert time.monotonic() < deadline, (before, after)
            time.sleep(0.1)
