"""SQLite's journal is chosen by library and file system, its files are private, its copies whole."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import select

from app import sqlite
from app.db import open_database
from app.errors import StorageRefused
from app.tables import learners
from tests.databases import migrated, sqlite_url

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FIXED = (3, 51, 3)
AFFECTED = (3, 40, 1)
MOUNTS = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:44 / /home/ada/my\\040disk rw - nfs4 server:/export rw,vers=4.2
31 22 0:45 / /mnt/share rw shared:7 master:3 - fuse.sshfs me@host:/ rw
32 31 254:2 / /mnt/share/local rw - xfs /dev/vdb rw
33 22 0:46 / /twice rw - cifs //old/share rw
34 22 0:47 / /twice rw - btrfs /dev/vdc rw
a line of another shape
"""


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 52, 0), True),
        ((4, 0, 0), True),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 0), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 40, 1), False),
    ],
)
def test_the_write_ahead_log_is_safe_from_the_release_with_the_fix_on(version: sqlite.Version, safe: bool) -> None:
    assert sqlite.wal_is_safe(version) is safe


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/data", "ext4"),
        ("/home/ada/my disk/data", "nfs4"),
        ("/home/ada/my diskette", "ext4"),
        ("/mnt/share/data", "fuse.sshfs"),
        ("/mnt/share/local/data", "xfs"),
        ("/twice/data", "btrfs"),
    ],
)
def test_the_file_system_is_that_of_the_innermost_and_last_mount(path: str, kind: str) -> None:
    assert sqlite.file_system_of(Path(path), MOUNTS) == kind


def test_without_a_list_of_mounts_the_file_system_is_unknown() -> None:
    assert sqlite.file_system_of(Path("/data"), "") == ""


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "fuse", "fuseblk", "fuse.sshfs"])
def test_a_file_system_without_shared_memory_gets_no_write_ahead_log_and_a_note(kind: str) -> None:
    journal = sqlite.choose_journal(FIXED, kind)
    assert journal.mode == "truncate"
    assert kind in journal.note


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "overlay", "tmpfs", "zfs", ""])
def test_a_local_file_system_gets_a_write_ahead_log_from_a_fixed_library_only(kind: str) -> None:
    assert sqlite.choose_journal(FIXED, kind) == sqlite.Journal("wal", "")
    affected = sqlite.choose_journal(AFFECTED, kind)
    assert affected.mode == "truncate"
    assert "3.40.1" in affected.note


@pytest.mark.parametrize(
    ("version", "mounts", "journal"),
    [(FIXED, MOUNTS, "wal"), (AFFECTED, MOUNTS, "truncate"), (FIXED, "1 0 0:1 / / rw - 9p host rw", "truncate")],
    ids=["fixed library", "affected library", "shared folder"],
)
def test_every_connection_works_as_chosen(tmp_path: Path, version: sqlite.Version, mounts: str, journal: str) -> None:
    with migrated(sqlite_url(tmp_path), version=version, mountinfo=mounts) as database, database.reading() as session:
        pragmas = ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "busy_timeout")
        found = [session.connection().exec_driver_sql(f"PRAGMA {pragma}").scalar_one() for pragma in pragmas]
    assert found == [journal, 2, 1, 1, sqlite.BUSY_SECONDS * 1000]


def test_a_database_with_a_write_ahead_log_is_taken_back_from_it_by_an_affected_library(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    with migrated(url, version=FIXED, mountinfo=MOUNTS) as database, database.writing() as session:
        session.execute(learners.insert().values(id="ada", created_at=NOW))
    with migrated(url, version=AFFECTED) as database, database.reading() as session:
        assert session.connection().exec_driver_sql("PRAGMA journal_mode").scalar_one() == "truncate"
        assert session.execute(select(learners.c.id)).scalars().all() == ["ada"]


def test_a_journal_that_cannot_be_changed_because_it_is_in_use_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    url = sqlite_url(tmp_path)
    with migrated(url, version=FIXED, mountinfo=MOUNTS) as database, database.reading() as session:
        session.execute(select(learners)).all()
        with pytest.raises(StorageRefused, match=r"database is locked\. Another process"):
            open_database(url, version=AFFECTED)


def test_folder_and_files_are_for_the_servers_user_alone(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        with migrated(sqlite_url(tmp_path), version=FIXED, mountinfo=MOUNTS) as database, database.writing() as session:
            session.execute(learners.insert().values(id="ada", created_at=NOW))
            paths = [tmp_path / "data", *(tmp_path / "data").iterdir()]
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}
    finally:
        os.umask(umask)
    assert modes.pop("data") == 0o700
    assert "worldsize.sqlite3-wal" in modes
    assert set(modes.values()) == {0o600}


def test_a_file_that_is_no_database_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("This is not a database, and it is longer than the header of one would be." * 20)
    with pytest.raises(StorageRefused, match=r"notes\.txt cannot be opened: file is not a database\. Stop the server"):
        open_database(f"sqlite:///{tmp_path / 'notes.txt'}")


def test_what_was_erased_while_somebody_read_leaves_the_log_with_a_later_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "LOG_SECONDS", 0)
    with migrated(sqlite_url(tmp_path), version=FIXED, mountinfo=MOUNTS) as database:
        assert database.file is not None
        log = database.file.with_name("worldsize.sqlite3-wal")
        with database.writing() as session:
            session.execute(learners.insert().values(id="ada-who-leaves", created_at=NOW))
        with database.reading() as reader:
            reader.execute(select(learners)).all()
            with database.erasing() as session:
                session.execute(learners.delete())
            with database.writing() as session:
                session.execute(learners.insert().values(id="bob", created_at=NOW))
            assert b"ada-who-leaves" in log.read_bytes()
        with database.writing() as session:
            session.execute(learners.insert().values(id="cy", created_at=NOW))
        assert log.stat().st_size == 0
        assert b"ada-who-leaves" not in database.file.read_bytes()
        with database.writing() as session:
            session.execute(learners.insert().values(id="di", created_at=NOW))
        assert log.stat().st_size > 0


def test_a_copy_of_a_database_in_use_has_every_committed_row(tmp_path: Path) -> None:
    """Most rows are still in the log, which a plain copy of the file would have missed."""
    with migrated(sqlite_url(tmp_path), version=FIXED, mountinfo=MOUNTS) as database:
        assert database.file is not None
        for number in range(20):
            with database.writing() as session:
                session.execute(learners.insert().values(id=str(number), created_at=NOW))
        target = tmp_path / "copy.sqlite3"
        sqlite.copy_database(database.file, target)
    with closing(sqlite3.connect(target)) as copy:
        assert copy.execute("SELECT count(*) FROM learners").fetchone() == (20,)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.sqlite3", "data"]


def test_a_copy_to_a_place_that_cannot_be_written_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with migrated(sqlite_url(tmp_path)) as database:
        assert database.file is not None
        (tmp_path / "taken").mkdir()
        with pytest.raises(StorageRefused, match="cannot be copied"):
            sqlite.copy_database(database.file, tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "taken"]


def test_a_file_lock_ends_with_the_process_that_held_it(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from app.sqlite import file_lock\n"
        "with file_lock(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "lock")], check=False)
    with sqlite.file_lock(tmp_path / "lock"):
        assert (tmp_path / "lock").exists()


