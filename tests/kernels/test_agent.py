"""Whatever goes wrong in an agent or a rank, the host is told in words: on a full disk, at any length, from the first line."""

from __future__ import annotations

import json
import multiprocessing
import os
import select
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.errors import RunFailed
from app.runs.launch import LocalLauncher
from kernels import agent, watch
from kernels.agent import ERROR_BYTES, Launch, run_agent, run_rank, shortened
from kernels.spec import Experiment, RunSpec

ESCAPED = 99


@pytest.fixture(scope="module")
def troubled() -> Iterator[LocalLauncher]:
    with LocalLauncher(extra_strategies="tests.kernels.troubled") as launcher:
        yield launcher


def error_of(launcher: LocalLauncher, trouble: str) -> RunFailed:
    with pytest.raises(RunFailed) as failed:
        launcher.run(RunSpec(2, (Experiment("troubled", options={"trouble": trouble}),)))
    return failed.value


@pytest.mark.torchrun
def test_a_full_disk_is_named_although_no_log_can_be_written(troubled: LocalLauncher) -> None:
    failed = error_of(troubled, "full disk")
    assert failed.rank == 1
    assert "No space left on device" in str(failed)


@pytest.mark.torchrun
def test_an_error_too_long_for_the_pipe_is_told_as_far_as_it_fits(troubled: LocalLauncher) -> None:
    failed = error_of(troubled, "long words")
    assert failed.rank == 1
    assert "ValueError: " + "\N{GRINNING FACE}" * 200 in str(failed)


def no_entry(spec: RunSpec, tell: Callable[[dict[str, Any]], None]) -> None:
    raise AssertionError("no rank is to get this far")


def told_by(tmp_path: Path, life: Callable[[Launch], None]) -> tuple[list[dict[str, Any]], int]:
    """What a forked process that lives `life` tells, and its exit code."""
    told, pipe = os.pipe()
    launch = Launch(RunSpec(1, (Experiment("single"),)), tmp_path, pipe, no_entry)
    pid = os.fork()
    if pid == 0:
        try:
            life(launch)
        finally:
            os._exit(ESCAPED)
    os.close(pipe)
    with os.fdopen(told) as lines:
        events = [json.loads(line) for line in lines]
    return events, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def cannot_settle(log: Path, parent_pid: int) -> None:
    raise PermissionError(1, "no log for you")


@pytest.fixture
def unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "_settle", cannot_settle)


@pytest.mark.usefixtures("unsettled")
def test_an_agent_that_fails_in_its_first_line_says_why_and_does_not_leave_with_0(tmp_path: Path) -> None:
    events, code = told_by(tmp_path, lambda launch: run_agent(launch, os.getppid()))
    assert events == [{"event": "raised", "rank": None, "error": "PermissionError: [Errno 1] no log for you"}]
    assert code == 1


@pytest.mark.usefixtures("unsettled")
def test_a_rank_that_fails_before_it_has_said_that_it_is_there_says_why(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    barrier = multiprocessing.get_context("fork").Barrier(1)
    events, _ = told_by(tmp_path, lambda launch: run_rank(launch, os.getppid(), barrier))
    assert events == [{"event": "raised", "rank": 0, "error": "PermissionError: [Errno 1] no log for you"}]


def test_a_rank_that_failed_before_it_was_there_is_named_as_starting(tmp_path: Path) -> None:
    run = watch.WatchedRun("a", RunSpec(1, (Experiment("single"),)), tmp_path, no_entry)
    run._take_in({"event": "raised", "rank": 0, "error": "PermissionError"})
    facts = run._failure_facts()
    assert (facts["rank"], facts["phase"], facts["error"]) == (0, "starting", "PermissionError")


@pytest.mark.parametrize("words", ["plain", "x" * 5000, "\N{GRINNING FACE}" * 5000, "\0" * 5000, "\udc80" * 5000, ""])
def test_words_are_shortened_by_their_length_as_json(words: str) -> None:
    cut = shortened(words, ERROR_BYTES)
    assert words.startswith(cut)
    assert cut == words or ERROR_BYTES * 0.85 < len(json.dumps(cut)) <= ERROR_BYTES
    assert len(json.dumps({"event": "raised", "rank": 7, "error": cut})) < select.PIPE_BUF
