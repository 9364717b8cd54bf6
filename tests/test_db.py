"""Transactions wait for their turn, snapshots hold still, and faults of the storage are told in words."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError, IntegrityError

from app import sqlite
from app.db import Database, check_readiness, insert_unless_there, open_database
from app.errors import StorageRefused
from app.tables import learners, probes, visits
from tests.databases import migrated, running_postgres, sqlite_url
from tests.unprivileged import unprivileged

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def add(database: Database, learner_id: str) -> None:
    """A learner, in a transaction of its own."""
    with database.writing() as session:
        session.execute(learners.insert().values(id=learner_id, created_at=NOW))


def count(database: Database) -> int:
    """How many learners there are."""
    with database.reading() as session:
        return session.execute(select(func.count()).select_from(learners)).scalar_one()


def test_a_read_before_a_write_never_makes_the_write_fail(database: Database) -> None:
    """Ten threads read a count and write it back raised by one, eight times each: on SQLite none may be lost."""
    if database.file is None:  # PostgreSQL asks for a lock of the row that was read.
        query = select(probes.c.count).with_for_update()
    else:
        query = select(probes.c.count)

    def raise_count() -> None:
        for _ in range(8):
            with database.writing() as session:
                seen = session.execute(query).scalar_one()
                session.execute(probes.update().values(count=seen + 1))

    with ThreadPoolExecutor(10) as pool:
        for future in [pool.submit(raise_count) for _ in range(10)]:
            future.result()
    with database.reading() as session:
        assert session.execute(select(probes.c.count)).scalar_one() == 80


def test_two_openings_of_one_file_wait_for_each_other_like_two_processes(tmp_path: Path) -> None:
    """Their locks in memory are not shared, so the database itself must make them wait."""

    def raise_count(database: Database) -> None:
        for _ in range(20):
            with database.writing() as session:
                seen = session.execute(select(probes.c.count)).scalar_one()
                session.execute(probes.update().values(count=seen + 1))

    with migrated(sqlite_url(tmp_path)) as left, migrated(sqlite_url(tmp_path)) as right, ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(raise_count, database) for database in (left, right, left, right)]:
            future.result()
        with left.reading() as session:
            assert session.execute(select(probes.c.count)).scalar_one() == 80


def test_a_snapshot_does_not_see_what_is_committed_meanwhile(database_url: str) -> None:
    with migrated(database_url, version=(3, 51, 3), mountinfo="") as database:
        with database.reading() as session:
            assert session.execute(select(func.count()).select_from(learners)).scalar_one() == 0
            add(database, "ada")
            assert session.execute(select(func.count()).select_from(learners)).scalar_one() == 0
        assert count(database) == 1


def test_all_snapshots_share_one_engine_which_takes_long_to_make(database: Database) -> None:
    with database.reading() as one, database.reading() as other:
        assert one.get_bind() is other.get_bind()


def test_a_reading_transaction_is_kept_from_writing(database: Database) -> None:
    with pytest.raises((StorageRefused, DBAPIError), match=r"(?i)read.?only"), database.reading() as session:
        session.execute(learners.insert().values(id="ada", created_at=NOW))
    add(database, "ada")
    assert count(database) == 1


def test_a_fault_of_our_own_sql_stays_what_it_is(database: Database) -> None:
    add(database, "ada")
    with pytest.raises(IntegrityError):
        add(database, "ada")


def test_what_a_learner_wrote_is_not_in_the_message_of_an_error(database: Database) -> None:
    row = {"learner_id": "x", "lesson": "what-ada-wrote", "section": "b", "first_at": NOW, "last_at": NOW}
    with pytest.raises(IntegrityError) as refused, database.writing() as session:
        session.execute(visits.insert().values(row))
    assert "INSERT INTO visits" in str(refused.value)
    assert "what-ada-wrote" not in str(refused.value)


def test_rows_of_an_unknown_learner_are_refused(database: Database) -> None:
    with pytest.raises(IntegrityError), database.writing() as session:
        session.execute(visits.insert().values(learner_id="x", lesson="a", section="b", first_at=NOW, last_at=NOW))


def test_insert_unless_there_says_whether_it_inserted(database: Database) -> None:
    with database.writing() as session:
        assert insert_unless_there(session, learners, {"id": "ada", "created_at": NOW})
        assert not insert_unless_there(session, learners, {"id": "ada", "created_at": NOW + timedelta(days=1)})
        assert session.execute(select(learners.c.created_at)).scalars().all() == [NOW]


def test_moments_come_back_in_utc_whatever_zone_they_had(database: Database) -> None:
    with database.writing() as session:
        moment = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
        session.execute(learners.insert().values(id="ada", created_at=moment))
        found = session.execute(select(learners.c.created_at)).scalar_one()
    assert found == NOW
    assert found.tzinfo is UTC


def test_a_moment_without_zone_is_refused(database: Database) -> None:
    with pytest.raises(Exception, match="needs a time zone"), database.writing() as session:
        session.execute(learners.insert().values(id="ada", created_at=NOW.replace(tzinfo=None)))


def test_a_database_that_works_is_ready_also_when_many_ask(database: Database) -> None:
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(check_readiness, database) for _ in range(24)]:
            future.result()
    with database.reading() as session:
        assert session.execute(select(probes.c.count)).scalar_one() == 24


def test_a_database_that_loses_what_was_written_is_not_ready(tmp_path: Path) -> None:
    """A trigger plays the broken disk: it puts every count back."""
    with migrated(sqlite_url(tmp_path)) as database:
        with database.writing() as session:
            session.connection().exec_driver_sql(
                "CREATE TRIGGER forget AFTER UPDATE ON probes WHEN new.count > 0 BEGIN UPDATE probes SET count = 0; END"
            )
        with pytest.raises(StorageRefused, match="lost what was just written"):
            check_readiness(database)


def test_a_database_whose_file_was_deleted_is_not_ready_and_not_made_anew(tmp_path: Path) -> None:
    with migrated(sqlite_url(tmp_path)) as database:
        assert database.file is not None
        database.file.unlink()
        with pytest.raises(StorageRefused, match="is gone"):
            check_readiness(database)
        database.close()
        with pytest.raises(StorageRefused, match="unable to open database file"):
            count(database)
        assert not database.file.exists()


def test_a_lock_that_somebody_keeps_is_told_in_words_and_the_next_write_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    with migrated(sqlite_url(tmp_path)) as database:
        assert database.file is not None
        with closing(sqlite3.connect(database.file, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StorageRefused, match="database is locked"):
                add(database, "ada")
        add(database, "ada")
        assert count(database) == 1


def test_a_thread_that_waits_too_long_for_its_turn_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    holding, done = threading.Event(), threading.Event()

    def hold(database: Database) -> None:
        with database.writing():
            holding.set()
            done.wait()

    with migrated(sqlite_url(tmp_path)) as database, ThreadPoolExecutor(1) as pool:
        holder = pool.submit(hold, database)
        holding.wait()
        with pytest.raises(StorageRefused, match="was busy"):
            add(database, "ada")
        done.set()
        holder.result()
        add(database, "ada")


@pytest.fixture
def others_folder() -> Iterator[Path]:
    """A folder anybody may look into and only its owner may write to."""
    folder = Path(tempfile.mkdtemp(prefix="ws-read-only-"))
    folder.chmod(0o555)
    yield folder
    shutil.rmtree(folder)


def test_a_folder_that_may_not_be_written_is_refused_with_what_to_do(others_folder: Path) -> None:
    with unprivileged(), pytest.raises(StorageRefused, match=r"cannot be made: Permission denied\. Set WORLDSIZE_DATA_DIR"):
        open_database(sqlite_url(others_folder))
    with unprivileged(), pytest.raises(StorageRefused, match=r"cannot be written: Permission denied\. Give it"):
        open_database(f"sqlite:///{others_folder / 'worldsize.sqlite3'}")


def test_a_database_that_becomes_read_only_refuses_writes_with_what_to_do(others_folder: Path) -> None:
    others_folder.chmod(0o755)
    with migrated(f"sqlite:///{others_folder / 'worldsize.sqlite3'}") as database:
        database.close()
        (others_folder / "worldsize.sqlite3").chmod(0o444)
        others_folder.chmod(0o555)
        with unprivileged(), pytest.raises(StorageRefused, match=r"readonly database\. Give the data folder"):
            add(database, "ada")


def test_a_full_database_is_told_in_words_and_works_again_once_there_is_room(tmp_path: Path) -> None:
    """A limit on the number of pages plays the full disk: SQLite reports both with the same code."""
    with migrated(sqlite_url(tmp_path)) as database:
        connection = database.engine.raw_connection()
        connection.cursor().execute("PRAGMA max_page_count=1")  # No fewer than there are, so: no page more.
        connection.close()
        with pytest.raises(StorageRefused, match=r"is full\. Free some space"):
            add(database, "a" * 100_000)
        database.close()  # The limit ends with the connection.
        add(database, "a" * 100_000)
        assert count(database) == 1


@pytest.mark.postgres
def test_a_postgres_that_stops_is_told_in_words_and_used_again_after_its_restart() -> None:
    with running_postgres() as server, migrated(server.url("postgres")) as database:
        add(database, "ada")
        server.stop()
        with pytest.raises(StorageRefused, match="Look whether PostgreSQL runs"):
            add(database, "bob")
        server.start()
        add(database, "cy")
        server.stop()
        server.start()
        add(database, "di")  # Nobody asked in between, so the connection that died is found out only now.
        assert count(database) == 3


@pytest.mark.postgres
def test_a_postgres_that_stops_in_mid_transaction_keeps_nothing_of_it() -> None:
    with running_postgres() as server, migrated(server.url("postgres")) as database:

        def add_while_it_stops() -> None:
            with database.writing() as session:
                session.execute(learners.insert().values(id="ada", created_at=NOW))
                server.stop()

        with pytest.raises(StorageRefused, match="Look whether PostgreSQL runs"):
            add_while_it_stops()
        server.start()
        assert count(database) == 0
