"""Real databases for tests: a SQLite file for each test, and a PostgreSQL of our own where its programs are installed.

A test that asks for `database_url` or `database` runs on both. `pytest -m "not postgres"` leaves PostgreSQL out.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from app.db import Database, open_database
from app.migrations import migrate


def postgres_programs() -> Path | None:
    """The folder with initdb and pg_ctl, where Debian or PATH has one."""
    found = [Path(path) for path in [shutil.which("initdb")] if path]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Both kinds of database for every test that uses one, directly or through another fixture."""
    if "database_url" in metafunc.fixturenames:
        metafunc.parametrize("database_url", BOTH_KINDS, indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without the programs of PostgreSQL its tests are deselected, and counted as such."""
    if postgres_programs() is not None:
        return
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("postgres")])
    items[:] = [item for item in items if not item.get_closest_marker("postgres")]


class PostgresServer:
    """A PostgreSQL on a socket in a folder of its own: no port, so any number of test processes run side by side."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._programs = programs
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root.
            shutil.chown(folder, "postgres", "postgres")
        self._call("initdb", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync", "--no-instructions")
        self.start()

    def start(self) -> None:
        """Start and wait until it answers. What a crash would lose is of no interest here, so it never syncs."""
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder} -c fsync=off -c max_connections=200"
        self._call("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """Stop at once, cutting every connection."""
        self._call("pg_ctl", "-m", "immediate", "stop")

    def url(self, name: str) -> str:
        """Of one database of this server."""
        return f"postgresql+psycopg://postgres@/{name}?host={quote(str(self.folder))}"

    def execute(self, statement: str) -> None:
        """One statement of an administrator."""
        with psycopg.connect(host=str(self.folder), user="postgres", autocommit=True) as connection:
            connection.execute(statement.encode())

    def _call(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self.folder / "data"), *arguments]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, cwd="/", stdout=subprocess.DEVNULL, timeout=300)


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A server of one's own, for tests that stop it."""
    programs = postgres_programs()
    assert programs is not None
    # Not below pytest's own folder: the path of a socket has at most 107 bytes, and user postgres must be able to enter.
    with tempfile.TemporaryDirectory(prefix="ws-pg-") as folder:
        server = PostgresServer(Path(folder), programs)
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Of all tests that do not mind company; started by the first one."""
    with running_postgres() as server:
        yield server


BOTH_KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Of an empty database that nobody else uses."""
    with empty_database(request, tmp_path) as url:
        yield url


@contextmanager
def empty_database(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """The URL of an empty database of the kind that a fixture was asked for by its parameter, one of BOTH_KINDS."""
    if request.param == "sqlite":
        yield sqlite_url(folder)
        return
    with empty_postgres(request.getfixturevalue("postgres_server")) as url:
        yield url


@contextmanager
def empty_postgres(server: PostgresServer) -> Iterator[str]:
    """The URL of an empty database of this server, dropped at the end whoever is still connected."""
    name = f"test_{secrets.token_hex(8)}"
    server.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    yield server.url(name)
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """Open, with all tables, on each kind in turn."""
    with migrated(database_url) as database:
        yield database


@contextmanager
def migrated(url: str, **opened: Any) -> Iterator[Database]:
    """The database of a URL with all its tables, closed at the end. `opened` goes to open_database."""
    database = open_database(url, **opened)
    try:
        migrate(database)
        yield database
    finally:
        database.close()


def sqlite_url(folder: Path) -> str:
    """Of a file in a folder that does not exist yet, as at the first start."""
    return f"sqlite:///{folder / 'data' / 'worldsize.sqlite3'}"
