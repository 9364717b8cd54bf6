"""A launcher that launches nothing: it makes its reports up, in no time or when it is told to."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from app.errors import RunCancelled
from app.runs.launch import Cancelled, Event, OnEvent, ignore, never
from kernels.spec import Environment, Experiment, ExperimentReport, Interval, RunReport, RunSpec, to_json

ENVIRONMENT = Environment(
    torch="2.13.0", python="3.11", backend="gloo", transport="loopback TCP", launcher="launch host", platform="Linux",
    cpu_count=2, gpu_count=0, started_at="2026-01-01T12:00:00+00:00",
)
LOOK_SECONDS = 0.02


def report(spec: RunSpec, *, agreeing: int = 3) -> RunReport:
    """Zero bytes everywhere: no measurement, but all that storing and sharing need."""
    timings = {"joining": 0.01, "warming up": 0.02, "measuring": 0.03, "total": 0.06}
    return RunReport(spec.P, tuple(_experiment(spec.P, one, agreeing) for one in spec.experiments), ENVIRONMENT, timings)


def _experiment(world_size: int, experiment: Experiment, agreeing: int) -> ExperimentReport:
    nothing = tuple((0,) * world_size for _ in range(world_size))
    return ExperimentReport(
        experiment=experiment, dtype="fp32", settled=True, repetitions=3, agreeing=agreeing, payload_matrix=nothing,
        wire_matrix=nothing, calls_payload_bytes_by_rank=None, calls_by_rank=None, memory_by_rank=(), timeline=(),
        step_seconds=0.001, weights_max_difference=0.0, weights_tolerance=1e-5,
    )


def timed_report(spec: RunSpec, seconds: Callable[[int], float]) -> RunReport:
    """Of a timing run whose calls took as long as `seconds` says of their bytes; on rank 0 half as long."""
    made = report(spec)
    return replace(made, experiments=tuple(
        replace(one, timeline=_calls(spec.P, one.experiment, seconds), settled=False, agreeing=0, payload_matrix=None,
                wire_matrix=None, note="a timing run leaves the backend alone and counts calls, not sockets")
        for one in made.experiments))


def _calls(world_size: int, experiment: Experiment, seconds: Callable[[int], float]) -> tuple[Interval, ...]:
    took = seconds(4 * int(experiment.option("elements")))
    return tuple(Interval(rank, "all_reduce", float(call), call + took * (0.5 if rank == 0 else 1.0))
                 for rank in range(world_size) for call in range(int(experiment.option("calls"))))


def outcome(spec: RunSpec) -> dict[str, object]:
    """The report as it is stored."""
    return to_json(report(spec))


class MadeUpLauncher:
    """Each run takes `seconds`, and goes on until `over` says so; with `journal` each start and end is a line of that file.

    With `stops` its process stops itself in the first run, where it is in no transaction, and goes on when told to.
    """

    def __init__(self, seconds: float = 0.0, *, over: Callable[[], bool] = lambda: True, journal: Path | None = None,
                 stops: bool = False, make: Callable[[RunSpec], RunReport] = report) -> None:
        self.seconds = seconds
        self.over = over
        self.journal = journal
        self.stops = stops
        self.make = make
        self.started = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def run(self, spec: RunSpec, on_event: OnEvent = ignore, cancelled: Cancelled = never) -> RunReport:
        """Looks as often as the real one whether it was cancelled."""
        self._note("start", spec)
        self.started.set()
        if self.stops:
            self.stops = False
            # To this thread: sent to the process, it might stop only after this thread had gone on into a transaction.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        on_event(Event("phase", {"phase": "measuring", "rank": 0, "experiment": 0, "strategy": spec.experiments[0].strategy,
                                 "dtype": "fp32", "repetition": 1, "repetitions": 3}))
        end = time.monotonic() + self.seconds
        while time.monotonic() < end or not self.over():
            if cancelled():
                self._note("cancel", spec)
                raise RunCancelled("The run was cancelled while measuring.", exit="cancelled", phase="measuring")
            threading.Event().wait(LOOK_SECONDS)
        self._note("end", spec)
        return self.make(spec)

    def _note(self, what: str, spec: RunSpec) -> None:
        if self.journal is not None:
            with self.journal.open("a") as file:
                file.write(f"{what} {spec.experiments[0].T} {os.getpid()} {time.time()}\n")
