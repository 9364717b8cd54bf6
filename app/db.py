"""The database: opened once, then asked for transactions that read or that write. No queries here."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, Table, create_engine, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects import sqlite as sqlite_dialect
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.orm import Session

from app import sqlite
from app.errors import StorageRefused
from app.fair_lock import FairLock
from app.tables import probes

# The web process answers in at most 40 threads, so none of them waits for a connection while others hold all.
CONNECTIONS_KEPT = 5
CONNECTIONS_ADDED = 35
CONNECT_SECONDS = 5
# A server that a broken network hides is given up in seconds; left to itself, the system would wait for a quarter of an hour.
BROKEN_NETWORK = {"tcp_user_timeout": 8000, "keepalives_idle": 4, "keepalives_interval": 2, "keepalives_count": 2}


@dataclass(frozen=True)
class Database:
    """An open database. `note` is what the operator should know about how it is used, "" if nothing. `snapshots` is `engine`
    for transactions that only read: the same connections, begun another way; made once, for that takes longer than a query.

    Both kinds of transaction are `with` blocks for one thread: open and close them inside the function that needs them,
    not in a dependency that outlives it, or waiting threads could starve the one they wait for. Keep them short: with
    SQLite's rollback journal a commit waits until nobody reads.
    """

    engine: Engine
    snapshots: Engine
    file: Path | None
    note: str
    _write_turn: FairLock = field(default_factory=FairLock, repr=False)
    _log_holds_erased: threading.Event = field(default_factory=threading.Event, repr=False)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """One consistent snapshot. A change in here is refused by the database."""
        with refusals_in_words(), Session(self.snapshots) as session, session.begin():
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """One transaction, committed at the end of the block, undone if the block raises.

        What the block has read cannot change before it writes on SQLite; on PostgreSQL lock the rows that matter.
        """
        with self._turn():
            with refusals_in_words(), Session(self.engine) as session, session.begin():
                yield session
            if self._log_holds_erased.is_set():
                self._empty_log(wait_seconds=0)

    @contextmanager
    def erasing(self) -> Iterator[Session]:
        """As `writing`, and afterwards SQLite's write-ahead log is emptied, where deleted rows could still be read.

        That needs a moment without a reader of what was. If there is none within seconds, the next transactions that write
        try again, each of them, until it is done. A process that is killed before leaves it to the last that closes the file.
        """
        with self.writing() as session:
            yield session
        self._empty_log(wait_seconds=sqlite.LOG_SECONDS)

    def _empty_log(self, wait_seconds: float) -> None:
        if self.file is None:
            return
        self._log_holds_erased.set()
        with suppress(StorageRefused):  # What was asked for is committed; if the disk is at fault, the next write tells.
            if sqlite.empty_log(self.file, wait_seconds):
                self._log_holds_erased.clear()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """SQLite has one writer at a time: threads of this process queue here, instead of polling its lock."""
        if self.file is None:
            yield
            return
        if not self._write_turn.acquire(timeout=sqlite.BUSY_SECONDS):
            raise StorageRefused(
                f"The database {self.file} was busy for {sqlite.BUSY_SECONDS} s.", "Nothing was stored; try again in a moment."
            )
        try:
            yield
        finally:
            self._write_turn.release()

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()


def open_database(
    url: str, *, version: sqlite.Version = sqlite3.sqlite_version_info[:3], mountinfo: str | None = None
) -> Database:
    """The database of a URL: sqlite:///FILE, or postgresql+psycopg://... . `version` and `mountinfo` are SQLite's and the
    system's own unless a test says otherwise. Raises StorageRefused.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _open_sqlite(parsed, version, sqlite.mountinfo() if mountinfo is None else mountinfo)
    engine = create_engine(
        parsed,
        hide_parameters=True,
        pool_pre_ping=True,  # A connection that died with a restart of the server is replaced, not handed out.
        pool_size=CONNECTIONS_KEPT,
        max_overflow=CONNECTIONS_ADDED,
        connect_args={"connect_timeout": CONNECT_SECONDS, **BROKEN_NETWORK},
    )
    snapshots = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    return Database(engine, snapshots, None, "")


def _open_sqlite(url: URL, version: sqlite.Version, mountinfo: str) -> Database:
    file = Path(url.database or "").resolve()  # A data folder is often a link to another disk.
    journal = sqlite.choose_journal(version, sqlite.file_system_of(file, mountinfo))
    sqlite.prepare_file(file, journal)
    engine = create_engine(
        url.set(database=str(file)),
        creator=lambda: sqlite.connect(file),
        hide_parameters=True,  # What a learner wrote does not belong into the message of an error, nor into the log.
        pool_size=CONNECTIONS_KEPT,
        max_overflow=CONNECTIONS_ADDED,
    )
    sqlite.configure(engine, journal)
    return Database(engine, engine.execution_options(reads_only=True), file, journal.note)


@contextmanager
def refusals_in_words() -> Iterator[None]:
    """Faults of the storage itself become StorageRefused; a fault of our own SQL stays what it is."""
    try:
        yield
    except PoolTimeoutError as error:
        raise StorageRefused("All connections to the database are in use.", "Try again in a moment.") from error
    except DatabaseError as error:
        if (refused := _refusal(error)) is None:
            raise
        raise refused from error


def _refusal(error: DatabaseError) -> StorageRefused | None:
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        damaged = getattr(cause, "sqlite_errorname", "").startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))
        if isinstance(error, OperationalError) or damaged:
            return StorageRefused(f"The database cannot be used: {cause}.", sqlite.remedy_for(cause))
    elif isinstance(error, OperationalError) or error.connection_invalidated:
        first_line = str(cause).strip().partition("\n")[0]
        return StorageRefused(
            f"The database server does not serve us: {first_line}.",
            "Look whether PostgreSQL runs and whether WORLDSIZE_DATABASE_URL names it.",
        )
    return None


def insert_unless_there(session: Session, table: Table, values: dict[str, Any]) -> bool:
    """Add the row unless one of its unique keys is taken. Whether it was added, decided by the database in one statement."""
    dialect = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite_dialect
    added = session.execute(dialect.insert(table).values(values).on_conflict_do_nothing().returning(*table.primary_key))
    return added.first() is not None


def count_up(session: Session, table: Table, key: dict[str, Any], most: int) -> int | None:
    """Raise the `count` of the row of this key, from nothing to 1 and on, unless it is `most` already: then None.

    Decided by the database in one statement; on PostgreSQL the row is held until the transaction ends.
    """
    dialect = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite_dialect
    one_more = dialect.insert(table).values({**key, "count": 1}).on_conflict_do_update(
        index_elements=list(table.primary_key), set_={"count": table.c.count + 1}, where=table.c.count < most)
    return session.execute(one_more.returning(table.c.count)).scalar_one_or_none()


def check_readiness(database: Database) -> None:
    """Count one further, commit, and read the count back in another transaction. Raises StorageRefused if any of it fails."""
    if database.file is not None and not database.file.exists():
        raise StorageRefused(
            f"The database {database.file} is gone, and what is stored now would be gone after a restart.",
            "Stop the server, put the file or the last backup in its place, and start again.",
        )
    with database.writing() as session:
        written = session.execute(probes.update().values(count=probes.c.count + 1).returning(probes.c.count)).scalar_one()
    with database.reading() as session:
        read = session.execute(select(probes.c.count)).scalar_one()
    if read < written:  # More is right as well: another process looked at the same moment.
        raise StorageRefused("The database lost what was just written.", "Look at the disk and restore the last backup.")
