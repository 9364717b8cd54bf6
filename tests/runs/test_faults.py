"""Every fault injected for real into a real launch; then a look for what it left, and another run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.errors import RunCancelled, RunEnded, RunFailed, RunTimedOut
from app.runs import launch
from app.runs.launch import Event, LocalLauncher
from app.runs.scratch import PREFIX
from kernels.spec import Experiment, RunSpec
from tests.runs.traces import TIME_IS_UP, Traces, processes_naming, wait_for_fault, wait_until_gone

pytestmark = pytest.mark.torchrun

FAULTY = "tests.runs.faulty_strategies"
WORLD_SIZE = 3
GONE_SECONDS = 120.0
HOSTS_OWN = ("host.log", "torchinductor_")  # torch makes the second when it is imported


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalLauncher]:
    with LocalLauncher(extra_strategies=FAULTY, scratch_parent=tmp_path_factory.mktemp("scratch")) as opened:
        yield opened


def faulty(fault: str, time_limit_seconds: float = 600.0) -> RunSpec:
    experiment = Experiment("faulty", options={"fault": fault, "rank": 1})
    return RunSpec(P=WORLD_SIZE, experiments=(experiment,), time_limit_seconds=time_limit_seconds)


def run_to_its_end(launcher: LocalLauncher, spec: RunSpec, when_running: Callable[[Traces], None] | None = None) -> RunEnded:
    """Run, do `when_running` once a rank hangs in its first step; the end leaves nothing, and the next run works."""
    traces = Traces()
    acted = False
    scratch = scratch_of(launcher)

    def on_event(event: Event) -> None:
        nonlocal acted
        traces.note(event)
        if when_running is not None and not acted and traces.all_in("warming up", spec.P):
            acted = True
            wait_for_fault(scratch)
            assert traces.note_ports() > 0
            when_running(traces)

    with pytest.raises(RunEnded) as ended:
        launcher.run(spec, on_event)
    scratch.joinpath(TIME_IS_UP).unlink(missing_ok=True)
    assert acted or when_running is None
    assert len(traces.ranks) == spec.P
    assert_nothing_left(launcher, traces)
    assert_next_run_works(launcher)
    return ended.value


def scratch_of(launcher: LocalLauncher) -> Path:
    assert launcher.scratch is not None
    return launcher.scratch


def reach_the_time_limit(launcher: LocalLauncher) -> None:
    scratch_of(launcher).joinpath(TIME_IS_UP).touch()


def assert_nothing_left(launcher: LocalLauncher, traces: Traces) -> None:
    scratch = scratch_of(launcher)
    assert traces.living() == []
    assert traces.open_ports() == set()
    assert [path.name for path in scratch.iterdir() if not path.name.startswith(HOSTS_OWN)] == []
    assert set(processes_naming(str(scratch))) <= {launcher.host_pid}


def assert_next_run_works(launcher: LocalLauncher) -> None:
    report = launcher.run(RunSpec(P=2, experiments=(Experiment("data_parallel"),), time_limit_seconds=600.0))
    assert report.experiments[0].payload_bytes_by_rank == (128, 128)


def test_a_rank_that_raises_is_named_with_its_error_and_its_log(launcher: LocalLauncher) -> None:
    error = run_to_its_end(launcher, faulty("raises"))
    assert isinstance(error, RunFailed)
    assert (error.rank, error.exit, error.phase) == (1, "exit code 1", "warming up faulty")
    assert error.message.startswith(
        "Rank 1 stopped with an error while warming up faulty: ValueError: the shard of this rank is missing. Every process"
    )
    assert "raise_an_error" in error.log_tail


def test_a_rank_that_leaves_is_named_with_its_exit_code(launcher: LocalLauncher) -> None:
    error = run_to_its_end(launcher, faulty("leaves"))
    assert isinstance(error, RunFailed)
    assert (error.rank, error.exit) == (1, "exit code 3")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_rank_killed_by_a_signal_is_named_with_the_signal(launcher: LocalLauncher, number: signal.Signals) -> None:
    error = run_to_its_end(launcher, faulty("hangs"), lambda traces: os.kill(traces.ranks[2], number))
    assert isinstance(error, RunFailed)
    assert (error.rank, error.exit) == (2, f"killed by {number.name}")
    assert f"Rank 2 was killed by {number.name} while warming up faulty." in error.message


def test_a_stopped_rank_is_named_when_the_time_is_over(launcher: LocalLauncher) -> None:
    def stop(traces: Traces) -> None:
        os.kill(traces.ranks[2], signal.SIGSTOP)
        reach_the_time_limit(launcher)

    error = run_to_its_end(launcher, faulty("hangs"), stop)
    assert isinstance(error, RunTimedOut)
    assert error.rank == 2
    assert "within 600 seconds" in error.message
    assert "rank 2 was stopped while warming up faulty" in error.message


def test_a_hang_ends_at_the_time_limit_and_the_log_shows_where_each_rank_was(launcher: LocalLauncher) -> None:
    error = run_to_its_end(launcher, faulty("hangs"), lambda _: reach_the_time_limit(launcher))
    assert isinstance(error, RunTimedOut)
    assert error.rank is None
    assert "ranks 0, 1 and 2 were waiting while warming up faulty" in error.message
    where_rank_1_was = error.log_tail.split("rank 1, innermost call first:")[1].split("rank 2,")[0]
    assert "wait_for_ever" in where_rank_1_was


def test_a_stopped_agent_does_not_outlive_the_time_limit(launcher: LocalLauncher) -> None:
    def stop(traces: Traces) -> None:
        os.kill(traces.agent, signal.SIGSTOP)
        reach_the_time_limit(launcher)

    assert isinstance(run_to_its_end(launcher, faulty("hangs"), stop), RunTimedOut)


def test_the_time_limit_comes_by_itself_however_far_the_run_is(launcher: LocalLauncher) -> None:
    traces = Traces()
    with pytest.raises(RunTimedOut, match="did not finish within 1 second"):
        launcher.run(faulty("hangs", 1.0), traces.note)
    assert_nothing_left(launcher, traces)
    assert_next_run_works(launcher)


def test_a_killed_agent_is_named_and_takes_its_ranks_with_it(launcher: LocalLauncher) -> None:
    error = run_to_its_end(launcher, faulty("hangs"), lambda traces: os.kill(traces.agent, signal.SIGKILL))
    assert isinstance(error, RunFailed)
    assert (error.rank, error.exit) == (None, "killed by SIGKILL")
    assert error.message.startswith("The agent, the process that starts the ranks, was killed by SIGKILL")


def test_a_killed_host_is_replaced(launcher: LocalLauncher) -> None:
    first = launcher.host_pid
    assert first is not None
    error = run_to_its_end(launcher, faulty("hangs"), lambda traces: os.kill(first, signal.SIGKILL))
    assert isinstance(error, RunFailed)
    assert (error.rank, error.exit, error.phase) == (None, "killed by SIGKILL", "warming up faulty")
    assert launcher.host_pid != first


def test_a_host_killed_between_runs_is_replaced(launcher: LocalLauncher) -> None:
    assert launcher.host_pid is not None
    os.kill(launcher.host_pid, signal.SIGKILL)
    assert_next_run_works(launcher)


def test_a_host_that_does_not_answer_is_killed_with_its_run(launcher: LocalLauncher, monkeypatch: pytest.MonkeyPatch) -> None:
    host = launcher.host_pid
    assert host is not None

    def stop(_traces: Traces) -> None:
        os.kill(host, signal.SIGSTOP)
        monkeypatch.setattr(launch, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 3600))

    error = run_to_its_end(launcher, faulty("hangs"), stop)
    assert isinstance(error, RunTimedOut)
    assert "did not answer" in error.message


def test_a_daemon_that_a_rank_left_behind_is_found_and_ended(launcher: LocalLauncher) -> None:
    error = run_to_its_end(launcher, faulty("starts a daemon"))
    assert "a daemon is left behind" in error.message


def test_a_rank_that_aborts_on_its_way_out_does_not_spoil_the_report(launcher: LocalLauncher) -> None:
    traces = Traces()
    report = launcher.run(faulty("aborts late"), traces.note)
    assert report.experiments[0].experiment.strategy == "faulty"
    assert_nothing_left(launcher, traces)


def test_a_run_is_cancelled_while_it_runs(launcher: LocalLauncher) -> None:
    traces = Traces()
    with pytest.raises(RunCancelled, match="cancelled while warming up faulty"):
        launcher.run(faulty("hangs"), traces.note, lambda: traces.all_in("warming up", WORLD_SIZE))
    assert_nothing_left(launcher, traces)
    assert_next_run_works(launcher)


def test_a_run_is_cancelled_before_it_has_started(launcher: LocalLauncher) -> None:
    traces = Traces()
    with pytest.raises(RunCancelled):
        launcher.run(faulty("hangs"), traces.note, lambda: True)
    assert_next_run_works(launcher)


def test_an_error_of_the_listener_ends_the_run(launcher: LocalLauncher) -> None:
    traces = Traces()

    def on_event(event: Event) -> None:
        traces.note(event)
        if traces.all_in("warming up", WORLD_SIZE):
            raise LookupError("the listener has had enough")

    with pytest.raises(LookupError):
        launcher.run(faulty("hangs"), on_event)
    assert traces.living() == []
    assert_next_run_works(launcher)


class Teller:
    """Another process with a launcher whose run hangs."""

    def __init__(self, scratch_parent: Path) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", "tests.runs.launch_and_tell", str(scratch_parent)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        self.traces = Traces()
        self.host = 0
        assert self.process.stdout is not None
        while not self.traces.all_in("warming up", 2):
            told = json.loads(self.process.stdout.readline())
            if told["event"] == "host":
                self.host = told["pid"]
            else:
                self.traces.note(Event(told["facts"]["event"], told["facts"]))
        self.traces.note_ports()

    def assert_all_gone(self) -> None:
        for pid in (self.process.pid, self.host, *self.traces.started):
            assert wait_until_gone(pid, GONE_SECONDS)
        assert self.traces.sockets
        assert self.traces.open_ports() == set()
        self.process.communicate()


def test_nothing_outlives_a_killed_launcher(tmp_path: Path) -> None:
    teller = Teller(tmp_path)
    teller.process.kill()
    teller.assert_all_gone()
    assert list(tmp_path.iterdir()) == []


def test_nothing_outlives_ctrl_c(tmp_path: Path) -> None:
    teller = Teller(tmp_path)
    os.killpg(teller.process.pid, signal.SIGINT)
    teller.assert_all_gone()
    assert teller.process.returncode == -signal.SIGINT
    assert list(tmp_path.iterdir()) == []


def test_what_a_launcher_and_host_killed_at_once_have_left_is_swept_by_the_next(tmp_path: Path) -> None:
    teller = Teller(tmp_path)
    os.kill(teller.host, signal.SIGSTOP)
    teller.process.kill()
    os.kill(teller.host, signal.SIGKILL)
    teller.assert_all_gone()
    assert len(list(tmp_path.iterdir())) == 1
    with LocalLauncher(scratch_parent=tmp_path) as launcher:
        assert list(tmp_path.iterdir()) == [launcher.scratch]
        assert launcher.scratch is not None
        assert launcher.scratch.name.startswith(PREFIX)
    assert list(tmp_path.iterdir()) == []
