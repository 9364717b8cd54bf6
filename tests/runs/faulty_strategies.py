"""Strategies that go wrong on purpose, in a real rank of a real launch; the launch host adds them with --extra-strategies.

What they wait for is a file, so that no test depends on how fast this machine gets ranks to work.
"""

from __future__ import annotations

import json
import multiprocessing.util
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from kernels import processes, watch
from kernels.spec import Choice, Range, StrategySpec
from kernels.strategies import data_parallel, ring_all_reduce
from kernels.strategies.base import Context, Strategy
from tests.runs.traces import AT_FAULT, HOLD, TIME_IS_UP

LOOK_SECONDS = 0.02


class ToldRun(watch.WatchedRun):
    """A run whose time is also up as soon as a file in the host's folder says so and no rank is at work any more."""

    def seconds_to_wait(self) -> float:
        return min(LOOK_SECONDS, super().seconds_to_wait())

    def advance(self) -> None:
        told = self.folder.with_name(TIME_IS_UP).exists()
        if told and all(processes.state(rank.pid) in ("waiting", "stopped") for rank in self._ranks.values()):
            self._deadline = 0.0
        super().advance()


watch.WatchedRun = ToldRun  # type: ignore[misc]


def reach_the_time_limit() -> None:
    """Called in a rank: the time of its run is up once every rank waits."""
    Path.cwd().with_name(TIME_IS_UP).touch()


def held(build_real: Callable[[Context], Strategy]) -> Callable[[Context], Strategy]:
    """A real strategy that after each step waits as long as the file lies beside the host's folder."""
    def build_held(context: Context) -> Strategy:
        strategy = build_real(context)
        step, hold = strategy.step, Path.cwd().parents[1] / HOLD

        def step_and_wait() -> None:
            step()
            while hold.exists():
                time.sleep(LOOK_SECONDS)

        strategy.step = step_and_wait  # type: ignore[method-assign]
        return strategy

    return build_held


class Faulty:
    """An all-reduce a step, except that one rank does something else first."""

    def __init__(self, context: Context, fault: Callable[[], None]) -> None:
        self.comm = context.new_comm(None)
        self.buffer = torch.zeros(4, dtype=context.dtype)
        self.fault = fault if context.mesh.rank == context.experiment.option("rank") else None

    def step(self) -> None:
        if self.fault is not None:
            self.fault()
        if self.comm is not None:
            self.comm.all_reduce(self.buffer)

    def check(self) -> float:
        return 0.0

    def parameters(self) -> list[Tensor]:
        return []

    def optimizer(self) -> None:
        return None


def raise_an_error() -> None:
    """What a bug in a strategy looks like."""
    raise ValueError("the shard of this rank is missing")


def wait_for_ever() -> None:
    """Hangs: no signal that Python handles will come."""
    Path(AT_FAULT).touch()
    while True:
        signal.pause()


def leave() -> None:
    """Ends the process without a word."""
    os._exit(3)


def abort_on_the_way_out() -> None:
    """Aborts after everything was measured and reported, when the process ends."""
    multiprocessing.util.Finalize(None, os.abort, exitpriority=0)


def start_a_daemon() -> None:
    """Leaves a process that has its own session and ignores SIGTERM, then fails."""
    script = "trap '' TERM; echo; exec sleep 1000"
    daemon = subprocess.Popen(["sh", "-c", script], start_new_session=True, stdout=subprocess.PIPE)
    if daemon.stdout is None:
        raise RuntimeError("the daemon was started without a pipe")
    daemon.stdout.readline()
    raise ValueError("a daemon is left behind")


def print_a_lot() -> None:
    """Writes to both streams, by Python and past it."""
    print('{"event": "report"}', flush=True)
    os.write(1, b"raw\n")
    os.write(2, b"raw\n")


def describe_itself() -> None:
    """Tells by its error where and how it runs."""
    described = {
        "folder": os.getcwd(),
        "temporary": tempfile.gettempdir(),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "threads": os.environ["OMP_NUM_THREADS"],
        "interface": os.environ["GLOO_SOCKET_IFNAME"],
        "name": socket.getfqdn(),
    }
    raise ValueError(json.dumps(described))


FAULTS: dict[str, Callable[[], None]] = {
    "raises": raise_an_error,
    "hangs": wait_for_ever,
    "leaves": leave,
    "aborts late": abort_on_the_way_out,
    "starts a daemon": start_a_daemon,
    "prints": print_a_lot,
    "describes itself": describe_itself,
}


def build(context: Context) -> Faulty:
    """The strategy `faulty`, at the fault its option names."""
    return Faulty(context, FAULTS[str(context.experiment.option("fault"))])


SPECS = [
    StrategySpec("faulty", "Faulty", "none", "Goes wrong.",
                 options=(Choice("fault", "what goes wrong", tuple(FAULTS)), Range("rank", "where", 1, 0, 7)))
]
STRATEGIES = {"faulty": build, "data_parallel": held(data_parallel.build),
              "ring_all_reduce": held(ring_all_reduce.build)}
