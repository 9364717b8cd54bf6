"""Real launches through the queue, each fault injected for real: words for the learner, nothing left, the next run works."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.db import Database
from app.runs.queue import Cancelled
from app.runs.store import Run, State
from app.settings import Settings
from kernels import processes
from kernels.spec import STRATEGY_SPECS, Experiment, RunSpec
from tests.databases import BOTH_KINDS, empty_database, migrated
from tests.runs.asking import ask, cancel, get, spec, wait_for
from tests.runs.traces import HOLD, TIME_IS_UP, processes_naming, wait_until_gone
from tests.runs.worker_process import FAULTY, start

pytestmark = pytest.mark.torchrun

WORLD_SIZE = 2
GONE_SECONDS = 120.0
# Held in its first step by a file, so that a fault finds it at work on any machine.
HELD = RunSpec(2, (Experiment("data_parallel"), Experiment("tensor_parallel")))


@dataclass
class Box:
    """A database, a data folder, and the worker that serves them."""

    database: Database
    folder: Path
    url: str
    worker: subprocess.Popen[bytes]

    def tree(self) -> dict[str, list[int]]:
        """Pids below the worker: its host, the agent of the run, the ranks."""
        levels = [[self.worker.pid]]
        for _ in range(3):
            levels.append([child for pid in levels[-1] for child in processes.children(pid)])
        return dict(zip(("worker", "host", "agent", "rank"), levels, strict=True))

    def tree_at_work(self, run_id: str) -> dict[str, list[int]]:
        """The same once the ranks of this run are in their steps."""
        deadline = time.monotonic() + 240
        while True:
            run = get(self.database, run_id)
            tree = self.tree()
            at_work = run.progress is not None and run.progress.phase in ("warming up", "measuring")
            if at_work and len(tree["rank"]) == WORLD_SIZE:
                return tree
            assert time.monotonic() < deadline, run
            assert not run.state.is_final, run.failure
            time.sleep(0.02)

    def ask_and_hold(self, wanted: RunSpec) -> str:
        """Ask for a run that does not get beyond its first step."""
        (self.folder / HOLD).touch()
        return ask(self.database, "ada", wanted).run_id

    def restart(self) -> None:
        """After the worker has died: another one in its place, which nothing holds up."""
        self.worker.wait()
        (self.folder / HOLD).unlink()
        self.worker = start(self.folder, self.url, real=True)


@pytest.fixture(scope="module", params=BOTH_KINDS)
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    home = tmp_path_factory.mktemp("box")
    folder = home / "worker"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch, empty_database(request, home) as url, migrated(url) as database:
        patch.setitem(STRATEGY_SPECS, "faulty", FAULTY)
        box = Box(database, folder, url, start(folder, url, real=True))
        try:
            yield box
            box.worker.terminate()
            assert box.worker.wait(120) == 0
            assert list(folder.glob("worldsize-run-*")) == []
        finally:
            box.worker.kill()
            box.worker.wait()


def ask_for(box: Box, fault: str) -> str:
    return ask(box.database, "ada", spec(strategy="faulty", options={"fault": fault, "rank": 1})).run_id


def assert_all_gone(tree: dict[str, list[int]], *levels: str) -> None:
    for level in levels:
        for pid in tree[level]:
            assert wait_until_gone(pid, GONE_SECONDS), level


def assert_next_run_works(box: Box) -> None:
    asked = ask(box.database, "bob", spec(), fresh=True)
    fractions: list[float] = []
    while not (run := get(box.database, asked.run_id)).state.is_final:
        fractions.append(0.0 if run.progress is None else run.progress.fraction)
        time.sleep(0.02)
    assert fractions == sorted(fractions)
    assert run.state is State.DONE
    assert [result["verdict"] for result in run.results] == ["equal"]
    assert run.results[0]["measured"]["payload_bytes_by_rank"] == [128, 128]


def failed(box: Box, run_id: str, state: State = State.FAILED) -> Run:
    run = wait_for(box.database, run_id, state, seconds=240)
    assert run.failure is not None
    assert "nothing is left running" in run.failure.message
    return run


def test_a_rank_that_raises_is_told_in_words_and_costs_no_quota(box: Box) -> None:
    run = failed(box, ask_for(box, "raises"))
    assert run.failure is not None
    assert (run.failure.rank, run.failure.exit) == (1, "exit code 1")
    assert "the shard of this rank is missing" in run.failure.message
    assert "raise_an_error" in run.failure.log_tail
    ask(box.database, "ada", spec(), settings=Settings(run_quota=1))
    assert_next_run_works(box)


def test_a_rank_that_hangs_is_ended_by_the_time_limit(box: Box) -> None:
    asked = ask_for(box, "hangs")
    tree = box.tree_at_work(asked)
    [scratch] = box.folder.glob("worldsize-run-*")
    (scratch / TIME_IS_UP).touch()
    run = failed(box, asked, State.TIMED_OUT)
    (scratch / TIME_IS_UP).unlink()
    assert run.failure is not None
    assert "within 600 seconds" in run.failure.message
    assert_all_gone(tree, "rank", "agent")
    assert_next_run_works(box)


@pytest.mark.parametrize("level", ["rank", "agent", "host"])
def test_what_is_killed_is_named_and_takes_the_run_with_it(box: Box, level: str) -> None:
    asked = ask_for(box, "hangs")
    tree = box.tree_at_work(asked)
    os.kill(tree[level][-1], signal.SIGKILL)
    run = failed(box, asked)
    assert run.failure is not None
    assert run.failure.exit == "killed by SIGKILL"
    assert_all_gone(tree, "rank", "agent")
    assert_next_run_works(box)


def test_a_running_run_is_cancelled_for_real(box: Box) -> None:
    asked = ask_for(box, "hangs")
    tree = box.tree_at_work(asked)
    assert cancel(box.database, asked, "ada") is Cancelled.ENDING
    run = failed(box, asked, State.CANCELLED)
    assert run.failure is not None
    assert "cancelled while warming up" in run.failure.message
    assert_all_gone(tree, "rank", "agent")
    assert_next_run_works(box)


@pytest.mark.parametrize("levels", [("worker",), ("worker", "host", "agent", "rank")], ids=["the worker", "everything"])
def test_a_run_whose_worker_is_killed_leaves_nothing_and_is_taken_up_again(box: Box, levels: tuple[str, ...]) -> None:
    asked = box.ask_and_hold(replace(HELD, seed=len(levels)))
    tree = box.tree_at_work(asked)
    for level in levels:
        for pid in tree[level]:
            processes.send(pid, signal.SIGKILL)
    assert_all_gone(tree, "rank", "agent", "host")
    box.restart()
    run = wait_for(box.database, asked, State.DONE, seconds=240)
    assert run.losses == 1
    assert [result["verdict"] for result in run.results] == ["equal"] * len(HELD.experiments)
    assert len(list(box.folder.glob("worldsize-run-*"))) == 1
    assert_next_run_works(box)


def test_sigterm_during_a_run_gives_it_back_and_leaves_nothing(box: Box) -> None:
    asked = box.ask_and_hold(replace(HELD, seed=7))
    tree = box.tree_at_work(asked)
    box.worker.terminate()
    assert box.worker.wait(120) == 0
    assert_all_gone(tree, "rank", "agent", "host")
    assert processes_naming(str(box.folder)) == []
    assert get(box.database, asked).state is State.QUEUED
    box.restart()
    assert wait_for(box.database, asked, State.DONE, seconds=240).losses == 0
