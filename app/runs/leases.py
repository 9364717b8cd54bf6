"""The queue as a worker sees it: taking a run, showing that it goes on, ending it or giving it back.

What a lease is and why it is so stands at the head of queue.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from app.db import insert_unless_there
from app.errors import RunUnreadable
from app.runs.store import Run, State, queue_order, run_of
from app.runs.stored import UNREADABLE, Failure, Progress
from app.tables import runs, workers


@dataclass(frozen=True)
class Lease:
    """A worker's hold on a run: what it has to carry out, and the take under which it may end it."""

    run: Run
    owner: str
    take: int

    @property
    def conditions(self) -> tuple[ColumnElement[bool], ...]:
        """True of the row while this hold lasts."""
        return (runs.c.id == self.run.id, runs.c.state == State.RUNNING.value, runs.c.take == self.take)


def anything_to_take(session: Session) -> bool:
    """Whether a run waits. Cheap, and takes no lock: idle workers ask ten times a second."""
    return session.execute(select(runs.c.number).where(runs.c.state == State.QUEUED).limit(1)).first() is not None


def take_next(session: Session, owner: str) -> Lease | None:
    """Take the run whose turn it is; None if none waits. Those that nobody here can read end on the way."""
    for number in queue_order(session):
        lease = _take(session, owner, runs.c.number == number, runs.c.state == State.QUEUED)
        if lease is not None:
            return lease
    return None


@dataclass(frozen=True)
class Held:
    """A running run as an observer sees it: one whose take and beat stay the same has lost its worker."""

    number: int
    owner: str
    take: int
    beat: int


def held_runs(session: Session) -> list[Held]:
    """All runs that some worker carries out, or carried out when it died."""
    columns = (runs.c.number, runs.c.owner, runs.c.take, runs.c.beat)
    return [Held(*row) for row in session.execute(select(*columns).where(runs.c.state == State.RUNNING))]


def take_over(session: Session, owner: str, lost: Held) -> Lease | None:
    """Take a run up again whose worker is gone. None if it moved on meanwhile, was cancelled, or has lost too many workers."""
    as_seen = (runs.c.number == lost.number, runs.c.state == State.RUNNING.value, runs.c.take == lost.take,
               runs.c.beat == lost.beat)
    one_more = {"losses": runs.c.losses + 1}
    if _changed(session, *as_seen, runs.c.cancel_requested, **_ending(State.CANCELLED, CANCELLED), **one_more):
        return None
    if _changed(session, *as_seen, runs.c.losses >= MOST_LOSSES - 1, **_ending(State.FAILED, POISONOUS), **one_more):
        return None
    return _take(session, owner, *as_seen, **one_more)


MOST_LOSSES = 3
CANCELLED = Failure("The run was cancelled. You can start it again at any time.", exit="cancelled", phase="running")
POISONOUS = Failure(
    f"The worker that carried out this run was lost {MOST_LOSSES} times, so it is not tried again. Other runs go on. "
    "Choose smaller values, or ask whoever runs this server to look at its log.",
    exit="worker lost",
    phase="running",
)


def _take(session: Session, owner: str, *conditions: ColumnElement[bool], **values: Any) -> Lease | None:
    now = datetime.now(UTC)
    taken = (
        update(runs)
        .where(*conditions)
        .values(state=State.RUNNING.value, owner=owner, take=runs.c.take + 1, beat=0, started_at=now, progress=None, **values)
        .returning(*runs.c)
    )
    row = session.execute(taken).one_or_none()
    if row is None:
        return None
    try:
        return Lease(run_of(row), owner, row.take)
    except RunUnreadable:
        _changed(session, runs.c.number == row.number, **_ending(State.FAILED, UNREADABLE))
        return None


class Order(StrEnum):
    """What a beat tells the worker."""

    GO_ON = "go on"
    CANCEL = "cancel"
    DROP = "drop"  # the run is no longer this worker's


def beat(session: Session, lease: Lease, progress: Progress | None) -> Order:
    """Show that the run goes on, and how far it is."""
    statement = update(runs).where(*lease.conditions).values(beat=runs.c.beat + 1, progress=progress and asdict(progress))
    cancel_requested = session.execute(statement.returning(runs.c.cancel_requested)).scalar_one_or_none()
    return _order(cancel_requested)


def orders(session: Session, lease: Lease) -> Order:
    """The same without writing."""
    return _order(session.execute(select(runs.c.cancel_requested).where(*lease.conditions)).scalar_one_or_none())


def _order(cancel_requested: bool | None) -> Order:
    if cancel_requested is None:
        return Order.DROP
    return Order.CANCEL if cancel_requested else Order.GO_ON


def release(session: Session, lease: Lease) -> bool:
    """Give an interrupted run back, so that it is taken up again. One that was to be cancelled is cancelled now."""
    cancelled = _changed(session, *lease.conditions, runs.c.cancel_requested, **_ending(State.CANCELLED, CANCELLED))
    return cancelled or _changed(session, *lease.conditions, state=State.QUEUED.value, progress=None)


@dataclass(frozen=True)
class Outcome:
    """What a worker brings back: the report, or why there is none; `seconds` by phase, those that are known.

    `repeatable`: all counts have a verdict or the times a line, so it may be shown to the next who asks.
    """

    state: State
    report: Mapping[str, Any] | None = None
    failure: Failure | None = None
    versions: str | None = None
    repeatable: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)


def end(session: Session, lease: Lease, outcome: Outcome) -> bool:
    """The end of a run. False if it is no longer this worker's: then nothing changes."""
    waited = None if lease.run.started_at is None else (lease.run.started_at - lease.run.asked_at).total_seconds()
    return _changed(
        session,
        *lease.conditions,
        **_ending(outcome.state, outcome.failure),
        report=outcome.report,
        versions=outcome.versions,
        repeatable=outcome.repeatable,
        queued_seconds=None if waited is None else max(0.0, waited),
        **{f"{name}_seconds": value for name, value in outcome.seconds.items()},
    )


def _ending(state: State, failure: Failure | None) -> dict[str, Any]:
    return {"state": state.value, "ended_at": datetime.now(UTC), "failure": None if failure is None else asdict(failure),
            "progress": None}


def _changed(session: Session, *conditions: ColumnElement[bool], **values: Any) -> bool:
    """Change the one row for which all conditions hold; whether there was one."""
    return session.execute(update(runs).where(*conditions).values(**values).returning(runs.c.number)).first() is not None


def show_worker(session: Session, owner: str, pid: int, versions: str) -> None:
    """This worker is there, and what it measures with."""
    now = datetime.now(UTC)
    row = {"slot": owner, "pid": pid, "versions": versions, "started_at": now, "seen_at": now}
    if not insert_unless_there(session, workers, row):
        del row["slot"]
        session.execute(update(workers).where(workers.c.slot == owner, workers.c.pid != pid).values(**row))
        session.execute(update(workers).where(workers.c.slot == owner).values(versions=versions, seen_at=now))
