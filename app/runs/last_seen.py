"""How each strategy stood in the latest runs that learners asked for, whatever their values were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.errors import RunUnreadable
from app.runs.store import Run, State, run_of
from app.runs.timing import PURPOSE
from app.tables import runs

LOOK_BACK = 12  # runs; their reports are large


@dataclass(frozen=True)
class LastSeen:
    """A strategy in the last run that had it. `result` is a row of the schema that /api carries."""

    ended_at: datetime
    P: int
    result: Mapping[str, Any]


def count_done(session: Session) -> int:
    """Runs that have ended with a measurement."""
    return session.execute(select(func.count()).select_from(runs).where(runs.c.state == State.DONE.value)).scalar_one()


def last_seen(session: Session) -> dict[str, LastSeen]:
    """By strategy, the latest first; of several variants in one run one that departs stands for all.

    Runs that took times compared nothing, and what another version left is passed over.
    """
    seen: dict[str, LastSeen] = {}
    for run in _latest(session):
        for result in sorted(run.results, key=_is_as_the_formula) if run.spec.purpose != PURPOSE else ():
            assert run.ended_at is not None
            seen.setdefault(result["strategy"], LastSeen(run.ended_at, run.spec.P, result))
    return seen


def _is_as_the_formula(result: Mapping[str, Any]) -> bool:
    return bool(result["verdict"] == "equal" and result["ideal_gap"]["bytes"] == 0)


def _latest(session: Session) -> Iterator[Run]:
    done = select(runs).where(runs.c.state == State.DONE.value).order_by(runs.c.number.desc()).limit(LOOK_BACK)
    for row in session.execute(done):
        try:
            yield run_of(row)
        except RunUnreadable:
            continue
