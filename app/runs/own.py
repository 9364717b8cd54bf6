"""A learner's own runs: the latest that fits a purpose, and whether a learner still waits for one. No writing."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.runs.store import Run, get
from app.tables import run_requests, runs
from kernels.spec import RunSpec, spec_from_json

LOOK_BACK = 50  # requests; reports are large, so only specs are read to find the one


def latest_that(session: Session, learner_id: str, fits: Callable[[RunSpec], bool]) -> Run | None:
    """The run whose spec fits that this learner asked for, joined or was shown last, and did not take back."""
    mine = (
        select(runs.c.id, runs.c.spec)
        .join(run_requests, run_requests.c.run_id == runs.c.id)
        .where(run_requests.c.learner_id == learner_id, ~run_requests.c.withdrawn)
        .order_by(run_requests.c.asked_at.desc())
        .limit(LOOK_BACK)
    )
    found = next((row.id for row in session.execute(mine) if fits(spec_from_json(row.spec))), None)
    return None if found is None else get(session, found)


def waits_for(session: Session, learner_id: str, run_id: str) -> bool:
    """Whether this learner asked for the run or joined it, and has not taken that back."""
    mine = (run_requests.c.learner_id == learner_id, run_requests.c.run_id == run_id, ~run_requests.c.withdrawn)
    return session.execute(select(run_requests.c.run_id).where(*mine)).first() is not None
