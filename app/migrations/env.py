"""What Alembic runs for every upgrade: the connection comes from `migrate`, whose transaction holds all steps."""

from __future__ import annotations

from alembic import context

from app.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
