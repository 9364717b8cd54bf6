"""What learners leave behind: attempts, predictions and visits. Every query on them stands here.

Functions take the session of one transaction (`Database.writing`, `.reading`, `.erasing`). A learner's rows are written under
the lock of the learner's own row, so two tabs of one learner take turns while learners do not wait for each other
(PostgreSQL), or all writers take turns (SQLite).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from sqlalchemy import ColumnElement, Row, Select, Table, func, insert, select
from sqlalchemy import delete as delete_from
from sqlalchemy.orm import Session

from app.db import insert_unless_there
from app.learners.quotas import Allowance, spend_answer, spend_learner
from app.tables import attempts as attempts_table
from app.tables import learners as learners_table
from app.tables import predictions as predictions_table
from app.tables import visits as visits_table

Outcome = Literal["right", "wrong"]
EXPORT_FORMAT = 1


@dataclass(frozen=True)
class Learner:
    """Somebody who has left something here. The id is opaque and says nothing about the person."""

    id: str
    created_at: datetime


@dataclass(frozen=True)
class Attempt:
    """One try at a question; `number` is 1 for the learner's first. Never changed once stored."""

    lesson: str
    question: str
    variant: int
    number: int
    answer: str
    outcome: Outcome
    submission_id: str
    created_at: datetime


@dataclass(frozen=True)
class Prediction:
    """What a learner expected before being shown; the first one is kept."""

    lesson: str
    prediction: str
    answer: str
    created_at: datetime


@dataclass(frozen=True)
class Visit:
    """A section a learner has been to, first and last."""

    lesson: str
    section: str
    first_at: datetime
    last_at: datetime


def get_or_create_learner(session: Session, learner_id: str, allowance: Allowance) -> Learner:
    """The learner of this id, made if new. Holds the learner's row until the transaction ends. Raises TooManyLearners."""
    learner, new = _hold(session, learner_id)
    if new:
        spend_learner(session, allowance)
    return learner


def _hold(session: Session, learner_id: str) -> tuple[Learner, bool]:
    """The learner, whose row nobody else changes until the transaction ends, and whether this transaction made it."""
    mine = select(learners_table).where(learners_table.c.id == learner_id).with_for_update()
    while True:
        new = insert_unless_there(session, learners_table, {"id": learner_id, "created_at": datetime.now(UTC)})
        if row := session.execute(mine).one_or_none():
            return _as(Learner, row), new
        # Deleted by another transaction between the two statements: then this one makes the learner anew.


def record_attempt(
    session: Session,
    learner_id: str,
    lesson: str,
    question: str,
    variant: int,
    answer: str,
    outcome: Outcome,
    submission_id: str,
    allowance: Allowance,
) -> Attempt:
    """Store one try and return it; sent again, return the one that was stored the first time.

    `submission_id` comes with the form. "Sent again" means the same id *and* the same content: a form restored by the Back
    button carries its old id, and another answer in it is another try. A repeated one keeps its first outcome
    and counts for no quota. Raises TooManyAnswers or TooManyLearners.
    """
    get_or_create_learner(session, learner_id, allowance)
    fingerprint = _fingerprint(submission_id, lesson, question, variant, answer)
    table = attempts_table.c
    stored = session.execute(
        _select(Attempt, attempts_table, table.learner_id == learner_id, table.fingerprint == fingerprint)
    ).one_or_none()
    if stored is not None:
        return _as(Attempt, stored)
    spend_answer(session, learner_id, allowance)
    last = select(func.coalesce(func.max(table.number), 0)).where(
        table.learner_id == learner_id, table.lesson == lesson, table.question == question
    )
    number = session.execute(last).scalar_one() + 1
    attempt = Attempt(lesson, question, variant, number, answer, outcome, submission_id, datetime.now(UTC))
    session.execute(insert(attempts_table).values(learner_id=learner_id, fingerprint=fingerprint, **asdict(attempt)))
    return attempt


def attempts(session: Session, learner_id: str, lesson: str | None = None) -> list[Attempt]:
    """A learner's tries in the order in which they were stored, of one lesson or of all."""
    table = attempts_table.c
    query = _select(Attempt, attempts_table, table.learner_id == learner_id).order_by(table.id)
    if lesson is not None:
        query = query.where(table.lesson == lesson)
    return [_as(Attempt, row) for row in session.execute(query)]


def record_prediction(
    session: Session, learner_id: str, lesson: str, prediction_id: str, answer: str, allowance: Allowance
) -> Prediction:
    """Keep what was predicted, and return what is kept: the first prediction, whatever comes later."""
    get_or_create_learner(session, learner_id, allowance)
    row = {"lesson": lesson, "prediction": prediction_id, "answer": answer, "created_at": datetime.now(UTC)}
    insert_unless_there(session, predictions_table, {"learner_id": learner_id, **row})
    kept = prediction(session, learner_id, lesson, prediction_id)
    assert kept is not None
    return kept


def prediction(session: Session, learner_id: str, lesson: str, prediction_id: str) -> Prediction | None:
    """What the learner predicted, None if nothing yet."""
    table = predictions_table.c
    row = session.execute(
        _select(
            Prediction,
            predictions_table,
            table.learner_id == learner_id,
            table.lesson == lesson,
            table.prediction == prediction_id,
        )
    ).one_or_none()
    return None if row is None else _as(Prediction, row)


def mark_visited(session: Session, learner_id: str, lesson: str, section: str, allowance: Allowance) -> None:
    """The learner is at this section now. The first moment stays; the last one only moves on, also if the clock goes back."""
    get_or_create_learner(session, learner_id, allowance)
    now = datetime.now(UTC)
    new = {"learner_id": learner_id, "lesson": lesson, "section": section, "first_at": now, "last_at": now}
    if not insert_unless_there(session, visits_table, new):
        table = visits_table.c
        session.execute(
            visits_table.update()
            .where(table.learner_id == learner_id, table.lesson == lesson, table.section == section, table.last_at < now)
            .values(last_at=now)
        )


def visits(session: Session, learner_id: str) -> list[Visit]:
    """Sections the learner has been to, the latest last."""
    table = visits_table.c
    query = _select(Visit, visits_table, table.learner_id == learner_id).order_by(table.last_at, table.lesson, table.section)
    return [_as(Visit, row) for row in session.execute(query)]


def export(session: Session, learner_id: str) -> dict[str, Any]:
    """All that is kept about a learner, ready for JSON; the same shape, with nothing in it, for an id nobody has used.

    Progress is not stored: it follows from the attempts, which are complete here.
    """
    learner = session.execute(select(learners_table).where(learners_table.c.id == learner_id)).one_or_none()
    predicted = _select(Prediction, predictions_table, predictions_table.c.learner_id == learner_id).order_by(
        predictions_table.c.created_at, predictions_table.c.lesson, predictions_table.c.prediction
    )
    return {
        "format": EXPORT_FORMAT,
        "exported_at": datetime.now(UTC).isoformat(),
        "learner": None if learner is None else _plain(_as(Learner, learner)),
        "attempts": [_plain(attempt) for attempt in attempts(session, learner_id)],
        "predictions": [_plain(_as(Prediction, row)) for row in session.execute(predicted)],
        "visits": [_plain(visit) for visit in visits(session, learner_id)],
    }


def delete(session: Session, learner_id: str) -> None:
    """Remove every row of the learner. Call it in `Database.erasing`, which also empties SQLite's log."""
    _hold(session, learner_id)  # Waits for a write that is under way, so that it cannot land afterwards.
    for table in (attempts_table, predictions_table, visits_table):
        session.execute(delete_from(table).where(table.c.learner_id == learner_id))
    session.execute(delete_from(learners_table).where(learners_table.c.id == learner_id))


Record = TypeVar("Record", Learner, Attempt, Prediction, Visit)


def _select(record: type[Record], table: Table, *conditions: ColumnElement[bool]) -> Select[Any]:
    return select(*(table.c[field.name] for field in fields(record))).where(*conditions)


def _as(record: type[Record], row: Row[Any]) -> Record:
    return record(**row._mapping)


def _plain(record: Learner | Attempt | Prediction | Visit) -> dict[str, Any]:
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in asdict(record).items()}


def _fingerprint(*parts: str | int) -> str:
    """SHA-256 of the parts, written so that no two lists of parts look the same."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
