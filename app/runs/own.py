"""A learner's own runs: all of them, the latest that fits a purpose, whether one is still waited for, and forgetting one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, delete, or_, select
from sqlalchemy.orm import Session

from app.errors import RunNotFound, RunUnreadable
from app.runs.store import ALIVE, Run, State, get, has_id
from app.runs.stored import spec_in
from app.tables import run_requests, runs
from kernels.spec import RunSpec, to_json

LOOK_BACK = 50  # requests; reports are large, so only specs are read to find the one
ASKED_FOR: tuple[ColumnElement[Any], ...] = (runs.c.id, runs.c.format, runs.c.spec, runs.c.state)


def latest_that(session: Session, learner_id: str, fits: Callable[[RunSpec], bool], *, measured: bool = False) -> Run | None:
    """The run whose spec fits that this learner asked for, joined or was shown last; `measured`: the last that has a result.

    One that was taken back is among them where that ended it. Where it went on for others it is no longer this learner's.
    """
    kept = or_(~run_requests.c.withdrawn, runs.c.cancel_requested, runs.c.state == State.CANCELLED.value)
    mine = (
        select(*ASKED_FOR)
        .join(run_requests, run_requests.c.run_id == runs.c.id)
        .where(run_requests.c.learner_id == learner_id, kept)
        .order_by(run_requests.c.asked_at.desc())
        .limit(LOOK_BACK)
    )
    if measured:
        mine = mine.where(runs.c.state == State.DONE.value)
    fitting = (get(session, row.id) for row in session.execute(mine).all() if _fits(row, fits))
    return next((run for run in fitting if run.results or not measured), None)


def _fits(row: Row[Any], fits: Callable[[RunSpec], bool]) -> bool:
    """What another version left, and cannot be read, fits nothing."""
    spec = _readable_spec(row)
    return spec is not None and fits(spec)


@dataclass(frozen=True)
class Entry:
    """A run in a learner's list, without its report. `spec` is None where another version stored what cannot be read here;
    `asked_first`: it was made for this learner, who did not join it or find it.
    """

    id: str
    spec: RunSpec | None
    state: State
    asked_first: bool
    asked_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


def history(session: Session, learner_id: str) -> list[Entry]:
    """Every run this learner asked for, joined or was shown, the latest first: all that is kept of that."""
    made = select(runs.c.id).where(runs.c.asked_by == learner_id)
    asked = select(run_requests.c.run_id).where(run_requests.c.learner_id == learner_id)
    columns = (*ASKED_FOR, runs.c.asked_by, runs.c.asked_at, runs.c.started_at, runs.c.ended_at,
               run_requests.c.asked_at.label("asked_for_at"))
    mine = and_(run_requests.c.run_id == runs.c.id, run_requests.c.learner_id == learner_id)
    rows = session.execute(select(*columns).outerjoin(run_requests, mine).where(runs.c.id.in_(made.union(asked))))
    entries = [
        Entry(row.id, _readable_spec(row), State(row.state), row.asked_by == learner_id, row.asked_for_at or row.asked_at,
              row.started_at, row.ended_at)
        for row in rows
    ]
    return sorted(entries, key=lambda entry: entry.asked_at, reverse=True)


def _readable_spec(row: Row[Any]) -> RunSpec | None:
    try:
        return spec_in(row)
    except RunUnreadable:
        return None


def export(session: Session, learner_id: str) -> list[dict[str, Any]]:
    """The same, ready for JSON; what was measured stands at each run's address."""
    return [
        {"id": entry.id, "address": f"/runs/{entry.id}", "spec": None if entry.spec is None else to_json(entry.spec),
         "state": entry.state.value, "asked_first": entry.asked_first,
         **{name: None if (time := getattr(entry, name)) is None else time.isoformat()
            for name in ("asked_at", "started_at", "ended_at")}}
        for entry in history(session, learner_id)
    ]


def waits_for(session: Session, learner_id: str, run_id: str) -> bool:
    """Whether this learner asked for the run or joined it, and has not taken that back."""
    mine = (run_requests.c.learner_id == learner_id, run_requests.c.run_id == run_id, ~run_requests.c.withdrawn)
    return session.execute(select(run_requests.c.run_id).where(*mine)).first() is not None


def forget(session: Session, learner_id: str, run_id: str) -> None:
    """The learner's latest run is then the one before. A run that goes on is not forgotten; its page stays in any case."""
    ended = select(runs.c.id).where(runs.c.id == run_id, runs.c.state.not_in(ALIVE))
    session.execute(delete(run_requests).where(run_requests.c.learner_id == learner_id, run_requests.c.run_id.in_(ended)))


def spec_of(session: Session, run_id: str) -> tuple[RunSpec, State]:
    """What was asked for and what has become of it, without the reports. Raises RunNotFound or RunUnreadable."""
    row = session.execute(select(*ASKED_FOR).where(has_id(run_id))).one_or_none()
    if row is None:
        raise RunNotFound(run_id)
    return spec_in(row), State(row.state)
