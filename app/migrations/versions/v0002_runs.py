"""Runs, who asked for them, and the workers that carry them out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

MOMENT = sa.DateTime(timezone=True)
ALIVE = sa.text("state IN ('queued', 'running') AND NOT cancel_requested")


def upgrade() -> None:
    """Make the three tables and their indexes."""
    op.create_table(
        "runs",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("asked_by", sa.Text),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("spec_key", sa.String(64), nullable=False),
        sa.Column("versions", sa.String(64)),
        sa.Column("repeatable", sa.Boolean, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("owner", sa.String(64)),
        sa.Column("take", sa.Integer, nullable=False),
        sa.Column("losses", sa.Integer, nullable=False),
        sa.Column("beat", sa.Integer, nullable=False),
        sa.Column("progress", sa.Text),
        sa.Column("report", sa.Text),
        sa.Column("results", sa.Text),
        sa.Column("failure", sa.Text),
        sa.Column("asked_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("ended_at", MOMENT),
        sa.Column("queued_seconds", sa.Float),
        sa.Column("launching_seconds", sa.Float),
        sa.Column("warming_up_seconds", sa.Float),
        sa.Column("measuring_seconds", sa.Float),
        sa.PrimaryKeyConstraint("number", name="pk_runs"),
        sa.UniqueConstraint("id", name="uq_runs_id"),
        sa.ForeignKeyConstraint(["asked_by"], ["learners.id"], name="fk_runs_asked_by", ondelete="SET NULL"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'done', 'failed', 'timed_out', 'cancelled')", name="ck_runs_state"
        ),
        sa.CheckConstraint("(state IN ('queued', 'running')) = (ended_at IS NULL)", name="ck_runs_ended"),
        sa.CheckConstraint("state != 'done' OR (report IS NOT NULL AND results IS NOT NULL)", name="ck_runs_report"),
    )
    op.create_index("ix_runs_state", "runs", ["state"])
    op.create_index("ix_runs_spec_key", "runs", ["spec_key"])
    op.create_index("ix_runs_asked_by_asked_at", "runs", ["asked_by", "asked_at"])
    op.create_index("uq_runs_alive", "runs", ["spec_key"], unique=True, sqlite_where=ALIVE, postgresql_where=ALIVE)
    op.create_table(
        "run_requests",
        sa.Column("learner_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.String(32), nullable=False),
        sa.Column("asked_at", MOMENT, nullable=False),
        sa.Column("withdrawn", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("learner_id", "run_id", name="pk_run_requests"),
        sa.ForeignKeyConstraint(["learner_id"], ["learners.id"], name="fk_run_requests_learner_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_requests_run_id", ondelete="CASCADE"),
    )
    op.create_index("ix_run_requests_run_id", "run_requests", ["run_id"])
    op.create_table(
        "workers",
        sa.Column("slot", sa.String(64), nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("versions", sa.String(64), nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("slot", name="pk_workers"),
    )
