"""The worker: takes a run, launches it, records how far it is and what it brought, and repeats.

It has as many lanes as runs may be carried out at a time. A lane is a thread with a slot and a warm launcher of its own.
Told to stop (SIGTERM, SIGINT), a lane gives its run back and ends. Killed, it leaves the run to the next worker.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import structlog
from sqlalchemy.orm import Session

from app.db import Database, open_database
from app.errors import AppError, RunCancelled, RunEnded, RunTimedOut, StorageRefused
from app.migrations import migrate
from app.private_files import make_private_folder
from app.runs import leases, results, retention, sharing, slots, timing
from app.runs.launch import Event, Launcher, LocalLauncher
from app.runs.leases import Held, Lease, Order, Outcome
from app.runs.store import State
from app.runs.stored import Failure, Progress
from app.settings import PREFIX, Settings
from kernels.spec import RunReport, RunSpec, run_faults, to_json

log: structlog.stdlib.BoundLogger = structlog.get_logger("app.runs")

POLL_SECONDS = 0.1  # how often an idle lane looks for a run
OBSERVE_SECONDS = 1.0  # how often it looks at the runs that others hold
SILENT_SECONDS = 20.0  # a run without a beat for this long has lost its worker
BEAT_SECONDS = 1.0
PROGRESS_SECONDS = 0.25  # at most four times a second is progress written
ORDERS_SECONDS = 0.2  # how often a running lane asks whether its run was cancelled
# A lane that cannot show a sign of life stops well before others take its run up.
MUTE_SECONDS = 8.0
SHOW_SECONDS = 5.0
SWEEP_SECONDS = 24 * 3600.0  # how often old runs are looked for, after the start
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.2, 3.0
LAST_WORD_SECONDS = 4.0  # told to stop, a lane tries for this long to store what it has

MakeLauncher = Callable[[], AbstractContextManager[Launcher]]
Result = TypeVar("Result")


def run_worker(settings: Settings, make_launcher: MakeLauncher | None = None) -> None:
    """Carry out runs until SIGTERM or SIGINT. Call it in the main thread. Raises AppError where it cannot work."""
    make = make_launcher or _launcher_of(settings)
    stopping = threading.Event()
    before = {number: signal.signal(number, _setter(stopping)) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        make_private_folder(settings.data_dir)
        with closing(open_database(settings.storage_url)) as database:
            migrate(database)
            keep = timedelta(days=settings.keep_runs_days)
            lanes = [Lane(database, settings.data_dir, make, stopping, keep) for _ in range(settings.concurrency)]
            _run_lanes(lanes, stopping)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _launcher_of(settings: Settings) -> MakeLauncher:
    if not settings.runs:
        raise AppError(f"Runs are switched off ({PREFIX}RUNS), so a worker has nothing to do. Switch them on to start one.")
    return LocalLauncher


def _setter(stopping: threading.Event) -> Callable[[int, FrameType | None], None]:
    def set_it(number: int, frame: FrameType | None) -> None:
        stopping.set()

    return set_it


def _run_lanes(lanes: list[Lane], stopping: threading.Event) -> None:
    """All lanes until they have ended; if one breaks, the others stop in good order and its fault is raised."""
    with ThreadPoolExecutor(len(lanes), thread_name_prefix="lane") as pool:
        served = [pool.submit(lane.serve) for lane in lanes]
        for one in served:
            one.add_done_callback(lambda _: stopping.set())
    for one in served:
        one.result()


class Lane:
    """One run at a time, on a launcher that is kept warm between runs. Runs that ended longer ago than `keep` are deleted."""

    def __init__(
        self, database: Database, folder: Path, make_launcher: MakeLauncher, stopping: threading.Event, keep: timedelta
    ) -> None:
        self._database = database
        self._folder = folder
        self._make_launcher = make_launcher
        self._stopping = stopping
        self._keep = keep
        self._owner = ""
        self._silence = Silence()
        self._shown = -math.inf
        self._observed = -math.inf
        self._swept = -math.inf

    def serve(self) -> None:
        """Until told to stop."""
        with slots.slot(self._folder) as self._owner, self._make_launcher() as launcher:
            log.info("worker lane ready", slot=self._owner[:8], pid=os.getpid())
            while not self._stopping.is_set():
                lease = self._patiently(self._next_run)
                if lease is not None:
                    self._carry_out(launcher, lease)
                else:
                    self._stopping.wait(POLL_SECONDS)
            log.info("worker lane ends", slot=self._owner[:8])

    def _patiently(self, action: Callable[[], Result | None], last_word_seconds: float = 0.0) -> Result | None:
        """Repeat until the database serves us, with growing pauses. None once told to stop, after a last while of trying."""
        pause, give_up, told = FIRST_PAUSE_SECONDS, math.inf, False
        while time.monotonic() < give_up:
            try:
                outcome = action()
            except StorageRefused as refused:
                if not told:
                    told = True
                    log.error("storage refuses the worker", why=str(refused))
                if self._stopping.wait(pause):
                    give_up = min(give_up, time.monotonic() + last_word_seconds)
                    time.sleep(min(pause, last_word_seconds))
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                continue
            if told:
                log.info("storage serves the worker again")
            return outcome
        return None

    def _next_run(self) -> Lease | None:
        now = time.monotonic()
        if now - self._shown >= SHOW_SECONDS:
            with self._database.writing() as session:
                self._show(session, now)
        if now - self._observed >= OBSERVE_SECONDS:
            self._observed = now
            if (lease := self._take_over_a_lost_run(now)) is not None:
                return lease
        if now - self._swept >= SWEEP_SECONDS:
            self._sweep(now)
        with self._database.reading() as session:
            if not leases.anything_to_take(session):
                return None
        with self._database.writing() as session:
            return leases.take_next(session, self._owner)

    def _show(self, session: Session, now: float) -> None:
        leases.show_worker(session, self._owner, os.getpid(), sharing.versions())
        self._shown = now

    def _sweep(self, now: float) -> None:
        """A few at a time: between them others write, and runs are taken."""
        with self._database.writing() as session:
            deleted = retention.sweep(session, datetime.now(UTC) - self._keep)
        if deleted:
            log.info("old runs deleted", runs=deleted)
        else:
            self._swept = now

    def _take_over_a_lost_run(self, now: float) -> Lease | None:
        with self._database.reading() as session:
            held = leases.held_runs(session)
        silent = self._silence.look(held, now)
        for run in held:
            # A lane between two runs holds none: one of its own slot was its predecessor's.
            if run.owner == self._owner or run in silent or slots.is_free(self._folder, run.owner):
                with self._database.writing() as session:
                    lease = leases.take_over(session, self._owner, run)
                if lease is not None:
                    log.warning("run taken up again", run=lease.run.id, losses=lease.run.losses)
                    return lease
        return None

    def _carry_out(self, launcher: Launcher, lease: Lease) -> None:
        bound = log.bind(run=lease.run.id, take=lease.take)
        bound.info("run starts", P=lease.run.spec.P, strategies=[one.strategy for one in lease.run.spec.experiments])
        watch = Watch(self._database, lease, self._stopping, self._show)
        outcome = self._launch(launcher, lease, watch)
        if outcome is None and watch.order is Order.DROP:
            bound.warning("run was taken by another worker")
            return
        stored = self._patiently(lambda: self._store(lease, outcome), LAST_WORD_SECONDS)
        state = "released" if outcome is None else outcome.state.value
        bound.info("run ends", state=state, stored=bool(stored), seconds=round(watch.seconds, 3),
                   why=outcome.failure.message if outcome is not None and outcome.failure is not None else "")

    def _store(self, lease: Lease, outcome: Outcome | None) -> bool:
        with self._database.writing() as session:
            return leases.release(session, lease) if outcome is None else leases.end(session, lease, outcome)

    def _launch(self, launcher: Launcher, lease: Lease, watch: Watch) -> Outcome | None:
        """What became of the run; None if it did not come to an end of its own and has to be given back."""
        spec = lease.run.spec
        if faults := run_faults(spec):
            words = f"This version cannot run what was asked for: {'; '.join(map(str, faults))}. Ask for it again."
            return Outcome(State.FAILED, failure=Failure(words, exit="refused", phase="starting"))
        try:
            return _done(spec, launcher.run(spec, watch.on_event, watch.interrupted), watch.seconds)
        except RunCancelled as cancelled:
            return _ended(State.CANCELLED, cancelled) if watch.order is Order.CANCEL else None
        except RunTimedOut as timed_out:
            return _ended(State.TIMED_OUT, timed_out)
        except RunEnded as failed:
            return _ended(State.FAILED, failed)


def _done(spec: RunSpec, report: RunReport, seconds: float) -> Outcome:
    """`launching` is all that is neither warming up nor measuring: forking, joining, gathering, leaving."""
    compared = results.compare(report)
    warming_up, measuring = (report.timings.get(phase, 0.0) for phase in ("warming up", "measuring"))
    return Outcome(
        State.DONE,
        report=_finite(to_json(report)),
        versions=sharing.versions(),
        repeatable=_tells_enough(spec, report, compared),
        seconds={"launching": max(0.0, seconds - warming_up - measuring), "warming_up": warming_up, "measuring": measuring},
    )


def _tells_enough(spec: RunSpec, report: RunReport, compared: list[results.Result]) -> bool:
    """Whether the next who asks for the same may be shown this: bytes with a verdict on all, or times with a line."""
    if spec.purpose == timing.PURPOSE:
        return timing.has_fit(report)
    return all(result.verdict is not results.Verdict.INCONCLUSIVE for result in compared)


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: weights that overflowed are told as null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _ended(state: State, ended: RunEnded) -> Outcome:
    return Outcome(state, failure=Failure(ended.message, ended.rank, ended.exit, ended.phase, ended.log_tail))


TOLD = ("experiment", "strategy", "dtype", "repetition", "repetitions")


class Watch:
    """Beside a run: takes its events in, shows that it goes on, and knows whether it should."""

    def __init__(
        self, database: Database, lease: Lease, stopping: threading.Event, show: Callable[[Session, float], None]
    ) -> None:
        self._database = database
        self._lease = lease
        self._stopping = stopping
        self._show = show
        self._began = time.monotonic()
        self._progress = self._written = Progress("launching", len(lease.run.spec.experiments))
        self._wrote = self._asked = self._shown = self._began
        self._first_dtypes: dict[int, str] = {}
        self._heard = self._began  # when the database last answered
        self.order = Order.GO_ON

    @property
    def seconds(self) -> float:
        """Since the run was taken."""
        return time.monotonic() - self._began

    def on_event(self, event: Event) -> None:
        """Rank 0 speaks for all: phases of the others are the same within milliseconds."""
        facts = event.facts
        if event.name == "phase" and facts["rank"] == 0:
            told = {name: facts[name] for name in TOLD if name in facts}
            if "dtype" in told:
                told["half"] = int(told["dtype"] != self._first_dtypes.setdefault(told["experiment"], told["dtype"]))
            self._progress = Progress(facts["phase"], self._progress.experiments, **told)

    def interrupted(self) -> bool:
        """Whether the launcher has to end the run: it was cancelled, is no longer ours, we are to stop, or nobody hears us."""
        now = time.monotonic()
        try:
            self._speak_or_listen(now)
            self._heard = time.monotonic()
        except StorageRefused as refused:
            self._wrote = self._asked = time.monotonic()
            log.warning("no sign of life could be stored", run=self._lease.run.id, why=str(refused))
        mute = time.monotonic() - self._heard > MUTE_SECONDS
        return mute or self._stopping.is_set() or self.order is not Order.GO_ON

    def _speak_or_listen(self, now: float) -> None:
        news = self._progress != self._written
        if now - self._wrote >= (PROGRESS_SECONDS if news else BEAT_SECONDS):
            with self._database.writing() as session:
                self.order = leases.beat(session, self._lease, self._progress)
                if now - self._shown >= SHOW_SECONDS:
                    self._show(session, now)
                    self._shown = now
            self._written = self._progress
            self._wrote = self._asked = now
        elif now - self._asked >= ORDERS_SECONDS:
            with self._database.reading() as session:
                self.order = leases.orders(session, self._lease)
            self._asked = now


class Silence:
    """Which runs have shown no beat for SILENT_SECONDS, by this process's own clock.

    A silence counts only while we could look: after a pause in looking, the database may have been shut to their workers too.
    """

    def __init__(self) -> None:
        self._since: dict[Held, float] = {}
        self._looked = -math.inf

    def look(self, held: Iterable[Held], now: float) -> set[Held]:
        """Take in what is to be seen now; returns the runs that have been silent for too long."""
        known = self._since if now - self._looked < 3 * OBSERVE_SECONDS else {}
        self._since = {run: known.get(run, now) for run in held}
        self._looked = now
        return {run for run, since in self._since.items() if now - since >= SILENT_SECONDS}
