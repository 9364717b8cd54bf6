"""Learners, their attempts, predictions and visits, and the row of the readiness check."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the first tables."""
    op.create_table(
        "learners",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_learners"),
    )
    op.create_table(
        "attempts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("learner_id", sa.Text, nullable=False),
        sa.Column("lesson", sa.Text, nullable=False),
        sa.Column("question", sa.Text, nullable=False),
        sa.Column("variant", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("submission_id", sa.Text, nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_attempts"),
        _learner("attempts"),
        sa.UniqueConstraint(
            "learner_id", "lesson", "question", "number", name="uq_attempts_learner_id_lesson_question_number"
        ),
        sa.UniqueConstraint("learner_id", "fingerprint", name="uq_attempts_learner_id_fingerprint"),
        sa.CheckConstraint("outcome IN ('right', 'wrong')", name="ck_attempts_outcome"),
        sa.CheckConstraint("number >= 1", name="ck_attempts_number"),
    )
    op.create_index("ix_attempts_lesson_question", "attempts", ["lesson", "question"])
    op.create_table(
        "predictions",
        sa.Column("learner_id", sa.Text, nullable=False),
        sa.Column("lesson", sa.Text, nullable=False),
        sa.Column("prediction", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("learner_id", "lesson", "prediction", name="pk_predictions"),
        _learner("predictions"),
    )
    op.create_table(
        "visits",
        sa.Column("learner_id", sa.Text, nullable=False),
        sa.Column("lesson", sa.Text, nullable=False),
        sa.Column("section", sa.Text, nullable=False),
        sa.Column("first_at", MOMENT, nullable=False),
        sa.Column("last_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("learner_id", "lesson", "section", name="pk_visits"),
        _learner("visits"),
    )
    probes = op.create_table(
        "probes",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_probes"),
    )
    op.bulk_insert(probes, [{"id": 1, "count": 0}])


def _learner(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["learner_id"], ["learners.id"], name=f"fk_{table}_learner_id", ondelete="CASCADE")
