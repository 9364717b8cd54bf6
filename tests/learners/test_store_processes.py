"""Several processes on one database, also killed in the midst: what was acknowledged is stored, and stored once."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from app.db import Database
from app.learners import store
from tests.databases import migrated, sqlite_url
from tests.learners.writer import PLENTY


@contextmanager
def writers(url: str, names: list[str], count: int) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that have opened the database and are let go together; none is left at the end."""
    command = [sys.executable, "-m", "tests.learners.writer", url, "ada"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, name, str(count)], **pipes) for name in names]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def stored(database: Database) -> list[store.Attempt]:
    """Everything the writers have stored."""
    with database.reading() as session:
        return store.attempts(session, "ada")


def test_two_processes_number_the_attempts_of_one_learner_without_gap_or_double(database_url: str) -> None:
    with migrated(database_url) as database:
        with writers(database_url, ["left", "right"], 40) as processes:
            acknowledged = [line for process in processes for line in process.communicate(timeout=60)[0].split()]
        assert [process.returncode for process in processes] == [0, 0]
        attempts = stored(database)
    assert sorted(a.submission_id for a in attempts) == sorted(acknowledged)
    assert [a.number for a in attempts] == list(range(1, 81))


@pytest.mark.parametrize("killed_after", [1, 3, 8, 20, 33])
def test_what_a_killed_process_acknowledged_is_stored_and_a_repetition_doubles_nothing(
    database_url: str, killed_after: int
) -> None:
    """At most one attempt, the one under way, may be stored without having been acknowledged."""
    with migrated(database_url) as database:
        with writers(database_url, ["left"], 100_000) as [process]:
            assert process.stdout is not None
            acknowledged = [process.stdout.readline().strip() for _ in range(killed_after)]
            os.kill(process.pid, signal.SIGKILL)
            acknowledged += process.stdout.read().split()
            assert process.wait() == -signal.SIGKILL
        kept = [a.submission_id for a in stored(database)]
        assert kept[: len(acknowledged)] == acknowledged
        assert len(kept) - len(acknowledged) in (0, 1)

        with writers(database_url, ["left"], len(acknowledged) + 1) as [again]:
            told = again.communicate(timeout=60)[0].split()
        assert [a.submission_id for a in stored(database)] == told
        assert [a.number for a in stored(database)] == list(range(1, len(acknowledged) + 2))


def test_a_database_whose_writer_was_killed_in_mid_transaction_is_whole(tmp_path: Path) -> None:
    """The killed process has changed pages in the file itself: its journal is still there, and undoes them."""
    url = sqlite_url(tmp_path)
    file = Path(url.removeprefix("sqlite:///"))
    with migrated(url, version=(3, 40, 1)) as database:
        with database.writing() as session:
            store.record_attempt(session, "ada", "ring", "first", 0, "a", "wrong", "1", PLENTY)
        code = (
            "import os, signal, sqlite3, sys\n"
            "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
            "c.execute('PRAGMA cache_size=1'); c.execute('BEGIN IMMEDIATE')\n"
            "c.executemany('INSERT INTO learners VALUES (?, 0)', [(str(i) * 400,) for i in range(2000)])\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        assert subprocess.run([sys.executable, "-c", code, str(file)], check=False).returncode == -signal.SIGKILL
        assert file.with_name(file.name + "-journal").stat().st_size > 0
        assert [a.answer for a in stored(database)] == ["a"]
        with closing(sqlite3.connect(file)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert connection.execute("SELECT id FROM learners").fetchall() == [("ada",)]
