"""SQLite made safe for several threads and processes: journal mode, file system, pragmas, transactions, copies."""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection, Engine, event

from app.errors import StorageRefused
from app.private_files import make_private_file, make_private_folder

Version = tuple[int, int, int]
JournalMode = Literal["wal", "truncate"]

BUSY_SECONDS = 10
LOG_SECONDS = 2  # a visitor waits while the log is emptied
# A write-ahead log needs memory shared by all processes that use it, which these file systems do not give.
NO_SHARED_MEMORY = re.compile(r"nfs\d?|cifs|smb\d?|9p|virtiofs|fuse(blk|\..+)?")


def wal_is_safe(version: Version) -> bool:
    """Whether this library has the fix of the WAL-reset bug, by which two processes could damage one database.

    Releases 3.7.0 to 3.51.2 have the bug; 3.51.3 and the maintenance releases 3.50.7 and 3.44.6 do not.
    Source: https://sqlite.org/wal.html#walresetbug.
    """
    return version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51, 0) or (3, 44, 6) <= version < (3, 45, 0)


def file_system_of(path: Path, mountinfo: str) -> str:
    """The type of the file system that holds the absolute path, from the text of /proc/self/mountinfo ("" if not there).

    A line is `36 35 98:0 /root /mount/point options optional... - type source ...` (proc(5)). The longest mount point
    above the path wins, and of equal ones the last, which covers the others. Blanks are written as \\040.
    """
    best, kind = -1, ""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        point = Path(re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), fields[4]))
        if path.is_relative_to(point) and len(point.parts) >= best:
            best, kind = len(point.parts), after.split(" ")[0]
    return kind


def mountinfo() -> str:
    """The mounts this process sees, or "" where the system has no such list."""
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


@dataclass(frozen=True)
class Journal:
    """How a database keeps a commit whole, and why so: `note` is a sentence for the operator, "" if there is nothing to say."""

    mode: JournalMode
    note: str


def choose_journal(version: Version, file_system: str) -> Journal:
    """WAL where the library and the file system allow it, a rollback journal elsewhere.

    Of the rollback journals TRUNCATE: its end of a commit is synced under synchronous=FULL, where DELETE may see the journal
    come back after a power cut and undo what was acknowledged. EXTRA cures that for DELETE, at about twice the time.
    """
    if NO_SHARED_MEMORY.fullmatch(file_system):
        return Journal(
            "truncate",
            f"The data folder lies on {file_system}, where SQLite's write-ahead log is not safe: using a rollback journal, "
            "which still depends on that file system's locks. A local disk or PostgreSQL is better.",
        )
    if not wal_is_safe(version):
        return Journal(
            "truncate",
            f"SQLite {'.'.join(map(str, version))} can damage a write-ahead log that two processes share: using a rollback "
            "journal, which is slower and safe. SQLite 3.51.3 or newer has the cure.",
        )
    return Journal("wal", "")


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """One process at a time. The lock belongs to the open file, so it ends with the process, however that ends."""
    make_private_file(path)
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def lock_path(database: Path) -> Path:
    """The file that is locked while a database is prepared or migrated."""
    return database.with_name(database.name + ".lock")


def prepare_file(database: Path, journal: Journal) -> None:
    """Make folder and file private, and set the journal mode. Under a lock: SQLite does not wait when it changes the mode."""
    make_private_folder(database.parent)
    with file_lock(lock_path(database)):
        make_private_file(database)
        try:
            with closing(connect(database)) as connection:
                (mode,) = connection.execute(f"PRAGMA journal_mode={journal.mode}").fetchone()
        except sqlite3.DatabaseError as error:
            raise StorageRefused(f"The database {database} cannot be opened: {error}.", remedy_for(error)) from error
    if mode != journal.mode:
        raise StorageRefused(
            f"The database {database} stays in journal mode {mode}, and {journal.mode} is needed here.",
            "Stop every other process that has it open, and start again.",
        )


def connect(database: Path) -> sqlite3.Connection:
    """A connection to a file that must be there: a vanished database is an error, not an empty new one."""
    return sqlite3.connect(f"{database.as_uri()}?mode=rw", uri=True, timeout=BUSY_SECONDS, check_same_thread=False)


def empty_log(database: Path, wait_seconds: float) -> bool:
    """Move everything from the write-ahead log to the database and cut the log to nothing.

    False where somebody still read or wrote after so many seconds: SQLite says so in a row and raises no error.
    """
    try:
        with closing(connect(database)) as connection:
            connection.execute(f"PRAGMA busy_timeout={round(wait_seconds * 1000)}")
            busy, _in_log, _moved = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy
    except sqlite3.DatabaseError as error:
        raise StorageRefused(f"The log of {database} cannot be emptied: {error}.", remedy_for(error)) from error


def remedy_for(error: BaseException | None) -> str:
    """What an operator can do about an error of the library, by its code."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_FULL"):
        return "Free some space on the disk of the data folder; nothing needs a restart."
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"Another process held the database for over {BUSY_SECONDS} s; try again, and look for a stuck process."
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return "Give the data folder and the files in it to the server's user, on a disk that can be written to."
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return "Stop the server, move the file away, and restore the last backup."
    return "Look at the disk of the data folder and at the system's log."


def configure(engine: Engine, journal: Journal) -> None:
    """Set every new connection up, and begin every transaction ourselves.

    Python's driver begins a transaction only before the first change. What was read before may be outdated by then, and the
    change fails with "database is locked" without waiting. So a transaction that may write takes the write lock at once
    (BEGIN IMMEDIATE, waiting for its turn), and one that only reads is kept from writing.
    """

    @event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None
        for pragma in (
            f"busy_timeout={BUSY_SECONDS * 1000}",
            "foreign_keys=ON",
            "synchronous=FULL",
            "secure_delete=ON",  # What a learner deletes is overwritten with zeros.
            f"journal_mode={journal.mode}",  # The file itself remembers only WAL.
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        reads_only = connection.get_execution_options().get("reads_only", False)
        connection.exec_driver_sql(f"PRAGMA query_only={'ON' if reads_only else 'OFF'}")
        connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")


def copy_database(database: Path, target: Path) -> None:
    """A whole copy of a database in use, by SQLite's backup API; a plain copy would miss what is still in the log.

    The copy gets its name only once it is complete and has passed SQLite's own check.
    """
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    make_private_file(unfinished)
    try:
        with closing(connect(database)) as source, closing(connect(unfinished)) as copy:
            source.backup(copy)
            (verdict,) = copy.execute("PRAGMA integrity_check").fetchone()
        if verdict != "ok":
            raise StorageRefused(f"A copy of {database} failed SQLite's check: {verdict}.", "Restore the last backup.")
        _sync(unfinished)
        unfinished.replace(target)
        _sync(target.parent)
    except (sqlite3.DatabaseError, OSError) as error:
        raise StorageRefused(f"The database {database} cannot be copied to {target}: {error}.", remedy_for(error)) from error
    finally:
        unfinished.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
