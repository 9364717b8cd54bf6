"""The launcher on this box: events, turns, warmth, and a host that never comes up. Faults are in test_faults.py."""

from __future__ import annotations

import itertools
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.errors import RunCancelled, RunFailed
from app.runs.launch import Event, LocalLauncher
from kernels.spec import Experiment, RunSpec
from tests.runs.traces import Traces

pytestmark = pytest.mark.torchrun

LIMIT = 600.0  # seconds: a busy machine may need many of them
FLAGSHIP = RunSpec(4, (Experiment("data_parallel"), Experiment("tensor_parallel"), Experiment("pipeline_gpipe")),
                   time_limit_seconds=LIMIT)
SMALL = RunSpec(2, (Experiment("data_parallel"),), time_limit_seconds=LIMIT)


def test_one_launch_measures_several_experiments_in_the_order_asked_for(launcher: LocalLauncher) -> None:
    report = launcher.run(FLAGSHIP)
    assert [experiment.experiment.strategy for experiment in report.experiments] == [
        "data_parallel", "tensor_parallel", "pipeline_gpipe",
    ]
    assert [experiment.payload_bytes_by_rank for experiment in report.experiments] == [
        (192, 192, 192, 192), (96, 64, 96, 128), (16, 16, 0, 0),
    ]


def test_events_come_in_the_order_of_a_run(launcher: LocalLauncher) -> None:
    events: list[Event] = []
    launcher.run(SMALL, events.append)
    assert events[0].name == "started"
    for rank in range(SMALL.P):
        mine = [event for event in events if event.facts.get("rank") == rank]
        assert mine[0].name == "rank"
        phases = [event.facts["phase"] for event in mine[1:]]
        assert list(dict.fromkeys(phases)) == ["joining", "warming up", "measuring"]


def test_no_rank_joins_before_the_last_one_is_forked(launcher: LocalLauncher) -> None:
    """A fork beside a busy store could leave a rank waiting for a lock that nobody holds any more."""
    events: list[str] = []
    spec = RunSpec(8, (Experiment("single"),), time_limit_seconds=LIMIT)
    launcher.run(spec, on_event=lambda event: events.append(event.name))
    assert events[:9] == ["started", *["rank"] * 8]
    assert events[9] == "phase"


def test_a_host_is_kept_for_the_next_run_and_keeps_nothing_of_the_last(launcher: LocalLauncher) -> None:
    launcher.run(SMALL)
    host = launcher.host_pid
    open_files = len(list(Path(f"/proc/{host}/fd").iterdir()))
    traces = Traces()
    launcher.run(SMALL, traces.note)
    assert launcher.host_pid == host
    assert len(list(Path(f"/proc/{host}/fd").iterdir())) == open_files
    assert traces.living() == []


def test_threads_take_turns(launcher: LocalLauncher) -> None:
    told: list[str] = []

    def run(name: str) -> None:
        launcher.run(SMALL, lambda event: told.append(name))

    threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b", "c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    changes = [later for earlier, later in itertools.pairwise(told) if later != earlier]
    assert sorted([told[0], *changes]) == ["a", "b", "c"]


def test_a_run_that_waits_for_its_turn_can_be_cancelled(launcher: LocalLauncher) -> None:
    refused: list[str] = []

    def on_event(event: Event) -> None:
        if event.name != "started":
            return

        def wait_in_vain() -> None:
            with pytest.raises(RunCancelled) as cancelled:
                launcher.run(SMALL, cancelled=lambda: True)
            refused.append(cancelled.value.phase)

        waiting = threading.Thread(target=wait_in_vain)
        waiting.start()
        waiting.join()

    launcher.run(SMALL, on_event)
    assert refused == ["waiting for its turn"]


def test_a_host_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    with ExitStack() as stack:
        launcher = LocalLauncher(scratch_parent=tmp_path)

        def open_and_run() -> None:
            stack.enter_context(launcher)
            launcher.run(SMALL)

        opener = threading.Thread(target=open_and_run)
        opener.start()
        opener.join()
        host = launcher.host_pid
        assert launcher.run(SMALL).experiments[0].payload_bytes_by_rank == (128, 128)
        assert launcher.host_pid == host


def test_a_host_that_cannot_start_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    with LocalLauncher(extra_strategies="tests.no_such_module", scratch_parent=tmp_path) as launcher:
        with pytest.raises(RunFailed, match="could not start \\(exit code 1\\)") as failed:
            launcher.run(SMALL)
        assert "No module named 'tests.no_such_module'" in failed.value.log_tail
        with pytest.raises(RunFailed):
            launcher.run(SMALL)
    assert list(tmp_path.iterdir()) == []


def test_a_launcher_that_was_not_opened_says_so() -> None:
    with pytest.raises(RuntimeError, match="with LocalLauncher"):
        LocalLauncher().run(SMALL)
