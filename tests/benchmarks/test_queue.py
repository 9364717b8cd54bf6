"""From asking to the stored report, on a warm worker: at the median, and by phase; then what it holds and leaves."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest

from app.db import Database
from app.runs.store import State
from kernels import processes
from kernels.spec import Experiment, RunSpec
from tests.databases import migrated, sqlite_url
from tests.runs.asking import ask, wait_for
from tests.runs.worker_process import running

pytestmark = [pytest.mark.benchmark, pytest.mark.torchrun, pytest.mark.timeout(900)]

ONE = RunSpec(4, (Experiment("data_parallel"),))
THREE = RunSpec(4, tuple(Experiment(name) for name in ("data_parallel", "tensor_parallel", "pipeline_gpipe")))
RUNS = 100  # of each kind: 200 in all, after which nothing may have grown
MOST_GROWTH = 1.05  # of resident memory; what is left else is looked at by tests/runs/test_leftovers.py


def click(database: Database, wanted: RunSpec) -> dict[str, float]:
    """Seconds of one run, seen by whoever asked: in all, and by phase."""
    began = time.monotonic()
    asked = ask(database, "ada", wanted, fresh=True)
    answered = time.monotonic()
    run = wait_for(database, asked.run_id, State.DONE, seconds=60)
    seconds = {"total": time.monotonic() - began, "asking": answered - began, **run.seconds}
    return {**seconds, "storing and seeing": max(0.0, seconds["total"] - sum(run.seconds.values()))}


def held(pid: int) -> tuple[int, int]:
    """Megabytes of resident memory, and open files."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) // 1024, len(list(Path(f"/proc/{pid}/fd").iterdir()))


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_from_asking_to_the_stored_report(tmp_path: Path) -> None:
    folder, url = tmp_path / "worker", sqlite_url(tmp_path)
    folder.mkdir()
    with migrated(url) as database, running(folder, url, real=True) as worker:
        for wanted in (ONE, THREE):  # the first ones start the host and fill what is kept
            click(database, wanted)
        [host] = processes.children(worker.pid)
        before, files = (held(worker.pid), held(host)), everything_in(folder)
        for name, wanted in (("one strategy", ONE), ("three strategies", THREE)):
            rows = [click(database, wanted) for _ in range(RUNS)]
            middle = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
            slowest = max(row["total"] for row in rows)
            split = ", ".join(f"{key} {value:.2f}" for key, value in middle.items() if key != "total")
            print(f"{name}: p50 {middle['total']:.2f} s, slowest {slowest:.2f} s, {RUNS} runs; at the median {split}")
        after, left = (held(worker.pid), held(host)), everything_in(folder) - files
    for process, first, last in zip(("worker", "host"), before, after, strict=True):
        print(f"{process}: {first[0]} MB and {first[1]} files after the first runs, {last[0]} MB and {last[1]} at the end")
        assert last[0] <= MOST_GROWTH * first[0]
    assert left == set()
