"""Runs keep their report once and last in the row, know the shape of what they keep, and may be deleted when they are old."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

MOMENT = sa.DateTime(timezone=True)
ALIVE = sa.text("state IN ('queued', 'running') AND NOT cancel_requested")
DONE = "state != 'done' OR report IS NOT NULL"
FORMAT = 1  # what all versions up to here have written
SHORT = (
    "number, id, asked_by, spec_key, versions, repeatable, state, cancel_requested, owner, take, losses, beat, asked_at, "
    "started_at, ended_at, queued_seconds, launching_seconds, warming_up_seconds, measuring_seconds"
)
LONG = "spec, progress, failure, report"


def upgrade() -> None:
    """`results` goes: it repeated the report, and is worked out of it when it is read."""
    if op.get_bind().dialect.name == "sqlite":
        _rebuild()
    else:
        _alter()
    op.create_index("ix_runs_asked_by_started_at", "runs", ["asked_by", "started_at"])
    op.create_table(
        "swept",
        sa.Column("name", sa.String(24), nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_swept"),
    )


def _alter() -> None:
    """PostgreSQL keeps long values elsewhere, so the order of columns is of no interest."""
    op.drop_constraint("ck_runs_report", "runs", type_="check")
    op.drop_column("runs", "results")
    op.create_check_constraint("ck_runs_report", "runs", DONE)
    op.add_column("runs", sa.Column("format", sa.Integer, nullable=False, server_default=str(FORMAT)))
    op.alter_column("runs", "format", server_default=None)


def _rebuild() -> None:
    """SQLite changes no constraint and no order. The table that points here is made anew as well: dropping the old `runs` while
    it still pointed there would delete its rows.
    """
    for index in ("ix_runs_state", "ix_runs_spec_key", "ix_runs_asked_by_asked_at", "uq_runs_alive"):
        op.drop_index(index, "runs")
    op.drop_index("ix_run_requests_run_id", "run_requests")
    op.rename_table("runs", "runs_before")
    op.rename_table("run_requests", "run_requests_before")
    _make_runs()
    _make_run_requests()
    op.execute(f"INSERT INTO runs ({SHORT}, format, {LONG}) SELECT {SHORT}, {FORMAT}, {LONG} FROM runs_before")
    columns = "learner_id, run_id, asked_at, withdrawn"
    op.execute(f"INSERT INTO run_requests ({columns}) SELECT {columns} FROM run_requests_before")
    op.drop_table("run_requests_before")
    op.drop_table("runs_before")


def _make_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("asked_by", sa.Text),
        sa.Column("spec_key", sa.String(64), nullable=False),
        sa.Column("versions", sa.String(64)),
        sa.Column("repeatable", sa.Boolean, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("owner", sa.String(64)),
        sa.Column("take", sa.Integer, nullable=False),
        sa.Column("losses", sa.Integer, nullable=False),
        sa.Column("beat", sa.Integer, nullable=False),
        sa.Column("asked_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("ended_at", MOMENT),
        *(sa.Column(f"{phase}_seconds", sa.Float) for phase in ("queued", "launching", "warming_up", "measuring")),
        sa.Column("format", sa.Integer, nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        *(sa.Column(name, sa.Text) for name in ("progress", "failure", "report")),
        sa.PrimaryKeyConstraint("number", name="pk_runs"),
        sa.UniqueConstraint("id", name="uq_runs_id"),
        sa.ForeignKeyConstraint(["asked_by"], ["learners.id"], name="fk_runs_asked_by", ondelete="SET NULL"),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'done', 'failed', 'timed_out', 'cancelled')", name="ck_runs_state"
        ),
        sa.CheckConstraint("(state IN ('queued', 'running')) = (ended_at IS NULL)", name="ck_runs_ended"),
        sa.CheckConstraint(DONE, name="ck_runs_report"),
    )
    op.create_index("ix_runs_state", "runs", ["state"])
    op.create_index("ix_runs_spec_key", "runs", ["spec_key"])
    op.create_index("ix_runs_asked_by_asked_at", "runs", ["asked_by", "asked_at"])
    op.create_index("uq_runs_alive", "runs", ["spec_key"], unique=True, sqlite_where=ALIVE, postgresql_where=ALIVE)


def _make_run_requests() -> None:
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
