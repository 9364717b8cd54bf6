"""The history of the tables, and `migrate`, which brings a database to the present at start-up.

A new migration is a file in versions/: the next number as its name and revision, `down_revision` the one before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from app import sqlite
from app.db import Database, refusals_in_words
from app.errors import StorageRefused
from app.tables import metadata

# Any number will do that no other user of the same PostgreSQL takes for a lock of its own.
ADVISORY_LOCK = 0x576F726C6453697A


def migrate(database: Database) -> str:
    """Bring the tables to the newest revision and return it. A database that is there already is left alone.

    Processes that start together wait for each other. All steps are one transaction, so a process killed in the midst
    leaves the database as it was. A SQLite file that holds something is copied first, beside itself.
    Raises StorageRefused for a database of a newer version, or one whose tables are not ours.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    newest = scripts.get_current_head()
    assert newest is not None
    with _alone(database), refusals_in_words():
        with database.engine.connect() as connection:
            current = _current(connection, scripts)
        if current != newest:
            if database.file is not None and current is not None:
                sqlite.copy_database(database.file, copy_path(database.file, newest))
            with database.engine.begin() as connection:
                config.attributes["connection"] = connection
                command.upgrade(config, newest)
    return newest


def copy_path(file: Path, newest: str) -> Path:
    """Where the state before the migration to `newest` is kept."""
    return file.with_name(f"{file.stem}.before-{newest}{file.suffix}")


def _current(connection: Connection, scripts: ScriptDirectory) -> str | None:
    """The revision of the database, None if it is empty."""
    current = MigrationContext.configure(connection).get_current_revision()
    if current is None:
        if taken := set(inspect(connection).get_table_names()) & set(metadata.tables):
            raise StorageRefused(
                f"The database has a table {min(taken)} that this course did not make.",
                "Set WORLDSIZE_DATABASE_URL to a database of its own.",
            )
    elif current not in {script.revision for script in scripts.walk_revisions()}:
        raise StorageRefused(
            f"The database was written by a newer version of World Size (its revision is {current}, "
            f"and this version knows {scripts.get_current_head()}).",
            "Install that version again, or restore the copy made before the upgrade.",
        )
    return current


@contextmanager
def _alone(database: Database) -> Iterator[None]:
    """One migrating process at a time; the lock ends with the process or its connection."""
    if database.file is not None:
        with sqlite.file_lock(sqlite.lock_path(database.file)):
            yield
        return
    with refusals_in_words(), database.engine.connect() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
        yield
