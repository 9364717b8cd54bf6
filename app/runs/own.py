"""A learner's own runs: the latest that fits a purpose, whether a learner still waits for one, and forgetting one."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from app.errors import RunNotFound
from app.runs.store import ALIVE, Run, State, get
from app.tables import run_requests, runs
from kernels.spec import RunSpec, spec_from_json

LOOK_BACK = 50  # requests; reports are large, so only specs are read to find the one


def latest_that(session: Session, learner_id: str, fits: Callable[[RunSpec], bool], *, measured: bool = False) -> Run | None:
    """The run whose spec fits that this learner asked for, joined or was shown last; `measured`: the last that has a result.

    One that was taken back is among them where that ended it. Where it went on for others it is no longer this learner's.
    """
    kept = or_(~run_requests.c.withdrawn, runs.c.cancel_requested, runs.c.state == State.CANCELLED.value)
    mine = (
        select(runs.c.id, runs.c.spec)
        .join(run_requests, run_requests.c.run_id == runs.c.id)
        .where(run_requests.c.learner_id == learner_id, kept)
        .order_by(run_requests.c.asked_at.desc())
        .limit(LOOK_BACK)
    )
    if measured:
        mine = mine.where(runs.c.state == State.DONE.value)
    found = next((row.id for row in session.execute(mine) if fits(spec_from_json(row.spec))), None)
    return None if found is None else get(session, found)


def waits_for(session: Session, learner_id: str, run_id: str) -> bool:
    """Whether this learner asked for the run or joined it, and has not taken that back."""
    mine = (run_requests.c.learner_id == learner_id, run_requests.c.run_id == run_id, ~run_requests.c.withdrawn)
    return session.execute(select(run_requests.c.run_id).where(*mine)).first() is not None


def forget(session: Session, learner_id: str, run_id: str) -> None:
    """The learner's latest run is then the one before. A run that goes on is not forgotten; its page stays in any case."""
    ended = select(runs.c.id).where(runs.c.id == run_id, runs.c.state.not_in(ALIVE))
    session.execute(delete(run_requests).where(run_requests.c.learner_id == learner_id, run_requests.c.run_id.in_(ended)))


def spec_of(session: Session, run_id: str) -> tuple[RunSpec, State]:
    """What was asked for and what has become of it, without the reports. Raises RunNotFound."""
    row = session.execute(select(runs.c.spec, runs.c.state).where(runs.c.id == run_id)).one_or_none()
    if row is None:
        raise RunNotFound(run_id)
    return spec_from_json(row.spec), State(row.state)
