"""The tables. Their history is in app/migrations; a test holds the two equal."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
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


class Json(TypeDecorator[Any]):
    """Plain dicts and lists as text: the same bytes in every database, and what JSON cannot say (NaN, Infinity) is refused."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value, allow_nan=False)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


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

# A run is asked for by the web process and carried out by a worker; every change of state is one conditional UPDATE.
# `owner` and `take` say who carries it out: take grows each time the run is taken, so a worker that lost it cannot end it.
ALIVE = "state IN ('queued', 'running') AND NOT cancel_requested"

runs = Table(
    "runs",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),  # the order of asking
    Column("id", String(32), nullable=False, unique=True),  # 128 random bits: whoever knows it may read the run
    Column("asked_by", Words, ForeignKey("learners.id", ondelete="SET NULL")),  # null once that learner's data is deleted
    Column("spec_key", String(64), nullable=False),
    Column("versions", String(64)),  # of what measured it; null until it is done
    Column("repeatable", Boolean, nullable=False),  # done, with a verdict or a fit: may be shown to the next who asks
    Column("state", String(16), nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    Column("owner", String(64)),
    Column("take", Integer, nullable=False),
    Column("losses", Integer, nullable=False),  # how many workers were lost while they carried it out
    Column("beat", Integer, nullable=False),  # grows while its worker lives
    Column("asked_at", UtcTime, nullable=False),
    Column("started_at", UtcTime),
    Column("ended_at", UtcTime),
    Column("queued_seconds", Float),
    Column("launching_seconds", Float),
    Column("warming_up_seconds", Float),
    Column("measuring_seconds", Float),
    # From here on what is long. SQLite reads a row from its start, so what is asked for often stands before it, and a report,
    # of 250,000 letters at times, stands last.
    Column("format", Integer, nullable=False),  # of the four below: app.runs.stored
    Column("spec", Json, nullable=False),
    Column("progress", Json),
    Column("failure", Json),
    Column("report", Json),
    CheckConstraint("state IN ('queued', 'running', 'done', 'failed', 'timed_out', 'cancelled')", name="state"),
    CheckConstraint("(state IN ('queued', 'running')) = (ended_at IS NULL)", name="ended"),
    CheckConstraint("state != 'done' OR report IS NOT NULL", name="report"),
    Index("ix_runs_state", "state"),
    Index("ix_runs_spec_key", "spec_key"),
    Index("ix_runs_asked_by_asked_at", "asked_by", "asked_at"),
    Index("ix_runs_asked_by_started_at", "asked_by", "started_at"),
    # Of the runs under way no two have the same spec: whoever asks for it joins the one there is.
    Index("uq_runs_alive", "spec_key", unique=True, sqlite_where=text(ALIVE), postgresql_where=text(ALIVE)),
)

# Who waits for a run or was shown it: one who joined a run of another has a row here as well.
run_requests = Table(
    "run_requests",
    metadata,
    _learner_in_key(),
    Column("run_id", String(32), ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("asked_at", UtcTime, nullable=False),
    Column("withdrawn", Boolean, nullable=False),
    Index("ix_run_requests_run_id", "run_id"),
)

# What /metrics counted of runs that are deleted since: a counter never falls. `name` is a state, or a column that was summed.
swept = Table(
    "swept",
    metadata,
    Column("name", String(24), primary_key=True),
    Column("count", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
)

# One row a worker slot, kept after the worker is gone: when it was last seen, and what it measures with.
workers = Table(
    "workers",
    metadata,
    Column("slot", String(64), primary_key=True),
    Column("pid", Integer, nullable=False),
    Column("versions", String(64), nullable=False),
    Column("started_at", UtcTime, nullable=False),
    Column("seen_at", UtcTime, nullable=False),
)

# How much was stored in an hour, by whom: `client` stands for a network address, which it does not tell, or for
# all of them together. Rows of hours gone by are removed.
tallies = Table(
    "tallies",
    metadata,
    Column("kind", String(16), primary_key=True),
    Column("client", String(64), primary_key=True),
    Column("hour", Integer, primary_key=True, autoincrement=False),  # since 1970
    Column("count", Integer, nullable=False),
)

# One row, whose count the readiness check raises and reads back.
probes = Table(
    "probes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("count", Integer, nullable=False),
)
