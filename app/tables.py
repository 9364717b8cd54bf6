"""The tables. Their history is in app/migrations; a test holds the two equal."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


class UtcTime(TypeDecorator[datetime]):
    """A moment, in UTC on the way in and on the way out. SQLite forgets the zone, so it is put back here."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"time = {value.isoformat()}: needs a time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Words(TypeDecorator[str]):
    """Text from outside. What no database can hold (NUL, halves of surrogate pairs) becomes U+FFFD, instead of an error."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else NOT_STORABLE.sub("\ufffd", value)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _learner() -> Column[str]:
    return Column("learner_id", Words, ForeignKey("learners.id", ondelete="CASCADE"), nullable=False)


def _learner_in_key() -> Column[str]:
    return Column("learner_id", Words, ForeignKey("learners.id", ondelete="CASCADE"), primary_key=True)


learners = Table(
    "learners",
    metadata,
    Column("id", Words, primary_key=True),  # opaque; the cookie carries it signed
    Column("created_at", UtcTime, nullable=False),
)

# Append only: a try is never changed, so what a learner once answered can always be seen again.
attempts = Table(
    "attempts",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    _learner(),
    Column("lesson", Words, nullable=False),
    Column("question", Words, nullable=False),
    Column("variant", Integer, nullable=False),
    Column("number", Integer, nullable=False),  # 1 for the learner's first try at this question
    Column("answer", Words, nullable=False),
    Column("outcome", String(16), nullable=False),
    Column("submission_id", Words, nullable=False),
    Column("fingerprint", String(64), nullable=False),  # of the submission id and all that was submitted
    Column("created_at", UtcTime, nullable=False),
    UniqueConstraint("learner_id", "lesson", "question", "number"),
    UniqueConstraint("learner_id", "fingerprint"),
    CheckConstraint("outcome IN ('right', 'wrong')", name="outcome"),
    CheckConstraint("number >= 1", name="number"),
    Index("ix_attempts_lesson_question", "lesson", "question"),
)

predictions = Table(
    "predictions",
    metadata,
    _learner_in_key(),
    Column("lesson", Words, primary_key=True),
    Column("prediction", Words, primary_key=True),
    Column("answer", Words, nullable=False),
    Column("created_at", UtcTime, nullable=False),
)

visits = Table(
    "visits",
    metadata,
    _learner_in_key(),
    Column("lesson", Words, primary_key=True),
    Column("section", Words, primary_key=True),
    Column("first_at", UtcTime, nullable=False),
    Column("last_at", UtcTime, nullable=False),
)

# One row, whose count the readiness check raises and reads back.
probes = Table(
    "probes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("count", Integer, nullable=False),
)
