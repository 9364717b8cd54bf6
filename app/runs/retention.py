"""Runs are deleted when they are old, so that neither the disk nor what is known of learners grows without end."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from app.db import insert_unless_there
from app.runs.store import counted, current_versions
from app.tables import runs, swept

AT_ONCE = 50  # in one transaction: SQLite overwrites what is deleted, and others want to write too


def sweep(session: Session, before: datetime) -> int:
    """Delete some of the runs that ended before this moment; returns how many, 0 when none is left.

    The newest result of each spec stays while it is what the next who asks would be shown. What /metrics counted stays counted.
    """
    shown = select(func.max(runs.c.number)).where(runs.c.repeatable, runs.c.versions == current_versions(session))
    old = select(runs.c.number).where(runs.c.ended_at < before, runs.c.number.not_in(shown.group_by(runs.c.spec_key)))
    numbers = session.execute(old.limit(AT_ONCE).with_for_update(skip_locked=True)).scalars().all()
    if numbers:
        gone = runs.c.number.in_(numbers)
        for name, (count, seconds) in sorted(counted(session, gone).items()):
            _add(session, name, count, seconds)
        session.execute(delete(runs).where(gone))
    return len(numbers)


def _add(session: Session, name: str, count: int, seconds: float) -> None:
    if not insert_unless_there(session, swept, {"name": name, "count": count, "seconds": seconds}):
        more = {"count": swept.c.count + count, "seconds": swept.c.seconds + seconds}
        session.execute(update(swept).where(swept.c.name == name).values(**more))
