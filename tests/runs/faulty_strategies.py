"""Strategies that go wrong on purpose, in a real rank of a real launch; the launch host adds them with --extra-strategies."""

from __future__ import annotations

import json
import multiprocessing.util
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable

import torch
from torch import Tensor

from kernels.spec import Choice, Range, StrategySpec
from kernels.strategies.base import Context


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
STRATEGIES = {"faulty": build}
