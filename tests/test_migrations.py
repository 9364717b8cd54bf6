"""A database is brought to the present once, whole or not at all, and never from a future we do not know."""

from __future__ import annotations

import fcntl
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic import op
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import bindparam, inspect, select, text

from app import migrations, sqlite
from app.db import Database, check_readiness, open_database
from app.errors import StorageRefused
from app.migrations import copy_path, migrate
from app.tables import UtcTime, learners, metadata, run_requests, runs
from tests.databases import migrated, sqlite_url

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NEWEST = "0004"
COPY_DATABASE = sqlite.copy_database


def set_revision(database: Database, revision: str) -> None:
    """As if another version had been here."""
    with database.writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})


def test_the_migrations_make_exactly_the_tables_of_the_code(database: Database) -> None:
    with database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_an_empty_database_gets_every_table_and_a_second_start_changes_nothing(database_url: str) -> None:
    database = open_database(database_url)
    assert migrate(database) == NEWEST
    with database.writing() as session:
        session.execute(learners.insert().values(id="ada", created_at=NOW))
    assert migrate(database) == NEWEST
    with database.reading() as session:
        assert session.execute(select(learners.c.id)).scalars().all() == ["ada"]
    assert set(metadata.tables) <= set(inspect(database.engine).get_table_names())
    database.close()


def test_processes_that_start_together_all_find_the_tables(database_url: str) -> None:
    code = (
        "import sys; from app.db import check_readiness, open_database; from app.migrations import migrate\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "database = open_database(sys.argv[1]); migrate(database); check_readiness(database); database.close()"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, database_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], errors


def test_a_database_of_a_newer_version_is_refused_in_words_and_left_alone(database: Database) -> None:
    set_revision(database, "9999")
    with pytest.raises(StorageRefused, match=r"newer version of World Size \(its revision is 9999.*knows 0004"):
        migrate(database)
    with database.reading() as session:
        assert session.execute(text("SELECT version_num FROM alembic_version")).scalar_one() == "9999"


def test_a_database_with_a_table_of_somebody_else_is_refused(database_url: str) -> None:
    database = open_database(database_url)
    with database.writing() as session:
        session.execute(text("CREATE TABLE attempts (id INTEGER)"))
    with pytest.raises(StorageRefused, match="has a table attempts that this course did not make"):
        migrate(database)
    database.close()


def test_a_migration_that_fails_half_way_changes_nothing(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    database = open_database(database_url)
    monkeypatch.setattr(op, "bulk_insert", fail)  # The last step of the first migration; all tables are made by then.
    with pytest.raises(ZeroDivisionError):
        migrate(database)
    assert inspect(database.engine).get_table_names() == []
    monkeypatch.undo()
    assert migrate(database) == NEWEST
    database.close()


def test_a_process_killed_in_mid_migration_leaves_a_database_that_the_next_start_completes(database_url: str) -> None:
    code = (
        "import os, signal, sys; from alembic import op; from app.db import open_database; from app.migrations import migrate\n"
        "op.bulk_insert = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "migrate(open_database(sys.argv[1]))"
    )
    killed = subprocess.run([sys.executable, "-c", code, database_url], check=False)
    assert killed.returncode == -signal.SIGKILL
    database = open_database(database_url)
    assert inspect(database.engine).get_table_names() == []
    assert migrate(database) == NEWEST
    check_readiness(database)
    database.close()


def copy_of_history(folder: Path) -> Path:
    """All migrations, to be changed by a test."""
    return Path(shutil.copytree(Path(migrations.__file__).parent, folder / "migrations",
                                ignore=shutil.ignore_patterns("__pycache__")))


RUN_OF_0003 = """INSERT INTO runs (number, id, asked_by, spec, spec_key, repeatable, state, cancel_requested, take, losses,
    beat, report, results, asked_at, ended_at, queued_seconds) VALUES (7, 'a-run', 'ada', '{"P": 2}', 'key', true, 'done',
    false, 1, 0, 0, '{"report": 1}', '[{"report": 1}]', :at, :at, 0.5)"""


def test_runs_and_who_asked_for_them_outlive_the_migration_that_rebuilds_their_table(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On SQLite to drop a table is to delete its rows, and with them what points to them."""
    database = open_database(database_url)
    history = copy_of_history(tmp_path)
    (history / "versions" / "v0004_runs_once.py").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "__file__", str(history / "__init__.py"))
        assert migrate(database) == "0003"
    with database.writing() as session:
        session.execute(learners.insert().values(id="ada", created_at=NOW))
        session.execute(text(RUN_OF_0003).bindparams(bindparam("at", type_=UtcTime)), {"at": NOW})
        session.execute(run_requests.insert().values(learner_id="ada", run_id="a-run", asked_at=NOW, withdrawn=False))
    migrate(database)
    with database.reading() as session:
        run = session.execute(select(runs)).one()
        assert (run.number, run.asked_by, run.format, run.spec, run.report) == (7, "ada", 1, {"P": 2}, {"report": 1})
        assert (run.state, run.queued_seconds, run.ended_at) == ("done", 0.5, NOW)
        assert session.execute(select(run_requests.c.run_id)).scalars().all() == ["a-run"]
    with database.writing() as session:
        session.execute(learners.delete())
    with database.reading() as session:
        assert session.execute(select(runs.c.asked_by)).scalars().all() == [None]
        assert session.execute(select(run_requests)).all() == []
    database.close()


def test_a_report_is_the_last_that_sqlite_reads_of_a_run(tmp_path: Path) -> None:
    with migrated(sqlite_url(tmp_path)) as database:
        columns = [column["name"] for column in inspect(database.engine).get_columns("runs")]
    assert columns == [column.name for column in runs.c]
    assert columns[-1] == "report"


def copy_under_lock(database: Path, target: Path) -> None:
    """The copy, if no other process can migrate meanwhile: it would then be a copy of what came after."""
    with sqlite.lock_path(database).open("rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    COPY_DATABASE(database, target)


def test_a_sqlite_database_is_copied_before_it_is_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An older revision is played by a copy of the history with one more step, which adds a table."""
    with migrated(sqlite_url(tmp_path)) as database:
        with database.writing() as session:
            session.execute(learners.insert().values(id="ada", created_at=NOW))
        history = copy_of_history(tmp_path)
        (history / "versions" / "v0005_later.py").write_text(
            "from alembic import op\nimport sqlalchemy as sa\nrevision = '0005'\ndown_revision = '0004'\n"
            "def upgrade():\n    op.create_table('later', sa.Column('id', sa.Integer, primary_key=True))\n"
        )
        monkeypatch.setattr(migrations, "__file__", str(history / "__init__.py"))
        monkeypatch.setattr(sqlite, "copy_database", copy_under_lock)
        assert migrate(database) == "0005"
        assert "later" in inspect(database.engine).get_table_names()
        assert database.file is not None
        copy = copy_path(database.file, "0005")
    with closing(sqlite3.connect(copy)) as before:
        assert before.execute("SELECT id FROM learners").fetchall() == [("ada",)]
        assert before.execute("SELECT version_num FROM alembic_version").fetchall() == [(NEWEST,)]
        assert before.execute("SELECT name FROM sqlite_master WHERE name = 'later'").fetchall() == []


def test_an_empty_sqlite_database_is_not_copied(tmp_path: Path) -> None:
    with migrated(sqlite_url(tmp_path)) as database:
        assert database.file is not None
        assert list(database.file.parent.glob("*before*")) == []
