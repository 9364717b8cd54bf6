"""Runs as they are stored, read back: one run, the order of the queue, figures for /metrics. No writing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Row, func, select
from sqlalchemy.orm import Session

from app.errors import RunNotFound, RunUnreadable
from app.runs import sharing, stored
from app.runs.stored import Failure, Progress
from app.tables import runs, swept, workers
from kernels.spec import Environment, RunReport, RunSpec

# A worker that lives shows itself every few seconds; one not seen for this long is away.
AWAY_SECONDS = 20.0


class State(StrEnum):
    """Where a run stands. The last four are final: a run never leaves them."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self not in (State.QUEUED, State.RUNNING)


@dataclass(frozen=True)
class Run:
    """One run as it stands now. `results` are rows of the schema that /api carries; empty unless it is done."""

    id: str
    number: int
    spec: RunSpec
    state: State
    asked_by: str | None
    cancel_requested: bool
    progress: Progress | None
    results: tuple[Mapping[str, Any], ...]
    failure: Failure | None
    asked_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    losses: int
    seconds: Mapping[str, float]  # by phase: queued, launching, warming_up, measuring; those that are known
    report: RunReport | None  # all that the launch brought back, with time lines and memory; None unless it is done

    @property
    def environment(self) -> Environment | None:
        """Where and with what it was measured; None unless it is done."""
        return None if self.report is None else self.report.environment


SECONDS = ("queued", "launching", "warming_up", "measuring")


def run_of(row: Row[Any]) -> Run:
    """A row of the table as a Run. Raises RunUnreadable where not even what was asked for can be read; one that was done, and
    whose report cannot be read, has ended without a result.
    """
    spec, state, failure = stored.spec_in(row), State(row.state), stored.failure_in(row)
    brought = stored.brought_by(row) if state is State.DONE else None
    if state is State.DONE and brought is None:
        state, failure = State.FAILED, stored.UNREADABLE
    return Run(
        id=row.id,
        number=row.number,
        spec=spec,
        state=state,
        asked_by=row.asked_by,
        cancel_requested=row.cancel_requested,
        progress=stored.progress_in(row, spec) if state is State.RUNNING else None,
        results=() if brought is None else brought.results,
        failure=failure,
        asked_at=row.asked_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        losses=row.losses,
        seconds={name: value for name in SECONDS if (value := getattr(row, f"{name}_seconds")) is not None},
        report=None if brought is None else brought.report,
    )


def get(session: Session, run_id: str) -> Run:
    """The run of this id. Raises RunNotFound, or RunUnreadable for what another version left."""
    row = session.execute(select(runs).where(has_id(run_id))).one_or_none()
    if row is None:
        raise RunNotFound(run_id)
    return run_of(row)


def has_id(run_id: str) -> ColumnElement[bool]:
    """True of the run of this id. Raises RunNotFound for one with a NUL, which PostgreSQL does not take in a text."""
    if "\0" in run_id:
        raise RunNotFound(run_id)
    return runs.c.id == run_id


def earlier(session: Session, spec: RunSpec) -> Run | None:
    """The latest run that measured the same with what the workers measure with now; one without a verdict proves nothing."""
    current = current_versions(session)
    if current is None:
        return None
    same = (runs.c.spec_key == sharing.spec_key(spec), runs.c.versions == current, runs.c.repeatable)
    found = _latest(session, *same)
    return found if found is not None and found.state is State.DONE else None


def alive(session: Session, spec: RunSpec) -> Run | None:
    """The run under way that measures the same, which whoever asks now would join."""
    return _latest(session, *same_and_alive(spec))


def same_and_alive(spec: RunSpec) -> tuple[ColumnElement[bool], ...]:
    """True of the one run under way that measures the same."""
    return (runs.c.spec_key == sharing.spec_key(spec), runs.c.state.in_(ALIVE), ~runs.c.cancel_requested)


ALIVE = (State.QUEUED.value, State.RUNNING.value)


def _latest(session: Session, *conditions: ColumnElement[bool]) -> Run | None:
    row = session.execute(select(runs).where(*conditions).order_by(runs.c.number.desc()).limit(1)).one_or_none()
    try:
        return None if row is None else run_of(row)
    except RunUnreadable:
        return None


def current_versions(session: Session) -> str | None:
    """What the worker measures with that was seen last; None before the first one."""
    return session.execute(select(workers.c.versions).order_by(workers.c.seen_at.desc()).limit(1)).scalar_one_or_none()


def worker_away_since(session: Session, now: datetime) -> datetime | None:
    """Since when no worker has shown itself; None while one is there. Long ago, if there never was one."""
    seen = session.execute(select(func.max(workers.c.seen_at))).scalar_one()
    if seen is None:
        return datetime.fromtimestamp(0, UTC)
    return None if now - seen < timedelta(seconds=AWAY_SECONDS) else seen


@dataclass(frozen=True)
class Waiting:
    """A queued run, as far as its turn depends on it."""

    number: int
    asked_by: str | None
    asked_at: datetime


# How long whoever was served lets others go first.
TURN = timedelta(seconds=60)


def service_order(waiting: Iterable[Waiting], last_served: Mapping[str, datetime]) -> list[int]:
    """Numbers of the queued runs in the order of their turns: by the time of asking, but each run counts as asked for a TURN
    after its learner was served last, or after the learner's run before it in the queue, where that is later.

    So one learner with fifty runs holds nobody up for more than one of them, and whoever waits is overtaken only by those who
    asked within a TURN or so: newcomers, as many as there may be, starve nobody. Runs of one learner keep their order. A run
    whose learner's data was deleted stands for a learner of its own.
    """
    before: dict[str, datetime] = dict(last_served)
    order = []
    for run in sorted(waiting, key=lambda run: run.number):
        counts_as = run.asked_at
        if run.asked_by is not None:
            if run.asked_by in before:
                counts_as = max(counts_as, before[run.asked_by] + TURN)
            before[run.asked_by] = counts_as
        order.append((counts_as, run.number))
    return [number for _, number in sorted(order)]


def queue_order(session: Session) -> list[int]:
    """Numbers of all queued runs, the next one first."""
    queued = session.execute(select(runs.c.number, runs.c.asked_by, runs.c.asked_at).where(runs.c.state == State.QUEUED))
    waiting = [Waiting(*row) for row in queued]
    if len(waiting) < 2:
        return [run.number for run in waiting]
    learners = {run.asked_by for run in waiting if run.asked_by is not None}
    served = session.execute(
        select(runs.c.asked_by, func.max(runs.c.started_at).label("at"))
        .where(runs.c.asked_by.in_(learners), runs.c.started_at.is_not(None))
        .group_by(runs.c.asked_by)
    )
    return service_order(waiting, {row.asked_by: row.at for row in served})


def position(session: Session, run: Run) -> int:
    """Place in the queue: 1 is next; 0 for a run that does not wait."""
    order = queue_order(session) if run.state is State.QUEUED else []
    return order.index(run.number) + 1 if run.number in order else 0


@dataclass(frozen=True)
class Figures:
    """What /metrics tells of runs: how many are in each state, and by phase how many seconds how many runs took in all."""

    by_state: Mapping[State, int]
    seconds: Mapping[str, float]
    counts: Mapping[str, int]
    losses: int

    @property
    def queue_depth(self) -> int:
        return self.by_state[State.QUEUED]


def figures(session: Session) -> Figures:
    """Counted over all runs there ever were, those that were deleted among them."""
    totals = counted(session)
    for name, count, seconds in session.execute(select(swept.c.name, swept.c.count, swept.c.seconds)):
        there = totals.get(name, (0, 0.0))
        totals[name] = (there[0] + count, there[1] + seconds)
    return Figures(
        by_state={state: totals.get(state.value, (0, 0.0))[0] for state in State},
        seconds={phase: totals[_column(phase)][1] for phase in SECONDS},
        counts={phase: totals[_column(phase)][0] for phase in SECONDS},
        losses=totals[LOSSES][0],
    )


LOSSES = "losses"


def counted(session: Session, *which: ColumnElement[bool]) -> dict[str, tuple[int, float]]:
    """By state how many of these runs there are, by phase how many took how long in all, and how many workers they lost."""
    states = session.execute(select(runs.c.state, func.count()).where(*which).group_by(runs.c.state))
    columns = [runs.c[_column(phase)] for phase in SECONDS]
    sums = session.execute(
        select(*map(func.count, columns), *map(func.sum, columns), func.sum(runs.c.losses)).where(*which)
    ).one()
    phases = len(SECONDS)
    totals: dict[str, tuple[int, float]] = {state: (count, 0.0) for state, count in states}
    for phase, count, seconds in zip(SECONDS, sums[:phases], sums[phases:-1], strict=True):
        totals[_column(phase)] = (count, float(seconds or 0))
    return totals | {LOSSES: (sums[-1] or 0, 0.0)}


def _column(phase: str) -> str:
    return f"{phase}_seconds"
