"""A learner's own runs: the latest that fits a purpose, whether a learner still waits for one, and forgetting one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Row, delete, or_, select
from sqlalchemy.orm import Session

from app.errors import RunNotFound, RunUnreadable
from app.runs.store import ALIVE, Run, State, get
from app.runs.stored import spec_in
from app.tables import run_requests, runs
from kernels.spec import RunSpec

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
    try:
        return fits(spec_in(row))
    except RunUnreadable:
        return False


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
    row = session.execute(select(*ASKED_FOR).where(runs.c.id == run_id)).one_or_none()
    if row is None:
        raise RunNotFound(run_id)
    return spec_in(row), State(row.state)
