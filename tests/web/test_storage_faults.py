"""What is sent while the disk is full, the database locked or its server away: refused in words, kept not even in part."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx import Client, Response
from sqlalchemy import create_engine, func, select

from app import sqlite
from app.tables import metadata
from tests.databases import running_postgres
from tests.no_room import NO_ROOM, PAGE, limited, no_room, small_disk
from tests.ports import free_port
from tests.web.runs_made_up import EXPERIMENT, HTMX
from tests.web.sites import LESSON, make_app
from tests.web.web_process import web_process

FAULTS_OF_PROGRAMS = re.compile(r"Traceback|sqlite|psycopg|OperationalError|disk I/O|\.py\b", re.IGNORECASE)
GRADED = re.compile(r'class="(right|wrong)"|\byes\b')
PATIENCE = 120.0  # seconds


@dataclass(frozen=True)
class Post:
    """Something a learner sends, and the table in which it is one row more."""

    address: str
    data: dict[str, str]
    table: str

    def send(self, client: Client, *, htmx: bool = False) -> Response:
        if self.address.startswith("/api/"):
            return client.post(self.address, json=self.data)
        return client.post(self.address, data=self.data, headers=HTMX if htmx else {})


POSTS = (
    Post("/runs", {"experiment": EXPERIMENT, "P": "4"}, "runs"),
    Post("/api/runs", {"strategy": "ring_all_reduce"}, "runs"),
    Post(f"{LESSON}/checkpoints/eight-gpus", {"answer": "56", "submission": "one"}, "attempts"),
    Post(f"{LESSON}/predictions/most-traffic", {"answer": "tensor"}, "predictions"),
    Post(f"{LESSON}/visits", {"section": "play"}, "visits"),
)


def rows(url: str) -> dict[str, int]:
    """How many each table has."""
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return {name: connection.execute(select(func.count()).select_from(table)).scalar_one()
                    for name, table in metadata.tables.items()}
    finally:
        engine.dispose()


def is_refused_in_words(post: Post, client: Client) -> None:
    """On a page, in the notice of htmx and under /api; and the visitor may be new or known."""
    for htmx in (False, True):
        response = post.send(client, htmx=htmx)
        assert (response.status_code, post) == (503, post)
        assert "Nothing can be stored right now" in response.text
        assert "an answer cost no try, and no run was started" in response.text
        assert not GRADED.search(response.text)
        assert response.headers["x-request-id"] in response.text
        assert not FAULTS_OF_PROGRAMS.search(response.text)
        assert ("<h1>" in response.text) == (not htmx and not post.address.startswith("/api/"))


def is_kept(post: Post, client: Client, url: str) -> None:
    """The same request, sent again, is one row more in its table."""
    before = rows(url)
    response = post.send(client)
    assert (response.status_code, post) in ((303, post), (202, post))
    assert rows(url)[post.table] == before[post.table] + 1


def all_is_kept(client: Client, url: str) -> None:
    for post in POSTS:
        is_kept(post, client, url)


def nothing_is_kept_of_what_is_refused(clients: list[Client]) -> None:
    for client in clients:
        for post in POSTS:
            is_refused_in_words(post, client)


@pytest.mark.parametrize("how", NO_ROOM)
def test_on_a_full_disk_nothing_is_half_kept_and_with_room_again_all_is(tmp_path: Path, how: str) -> None:
    port = free_port()
    with small_disk(how, tmp_path) as disk, web_process(disk, port) as server:
        url = f"sqlite:///{disk / 'var' / 'worldsize.sqlite3'}"
        with visitor(port) as newcomer, visitor(port) as known:
            known.get(LESSON)
            assert known.post("/theme", data={"theme": "dark"}).status_code == 303
            before = rows(url)
            with no_room(how, disk, server):
                nothing_is_kept_of_what_is_refused([newcomer, known])
                assert known.get("/").status_code == known.get(LESSON).status_code == 200
                assert known.get("/healthz").json() == {"status": "ok"}
                unready = known.get("/readyz")
                assert (unready.status_code, str(disk) in unready.text) == (503, False)
                assert rows(url) == before
            assert rows(url) == before
            all_is_kept(known, url)


@pytest.mark.parametrize(("post", "lacking"), [(POSTS[0], "run_requests"), (POSTS[2], "tallies")])
def test_where_there_is_room_for_a_part_no_part_is_kept(tmp_path: Path, post: Post, lacking: str) -> None:
    """A new learner's row would still fit; that of the table `lacking`, farther on in the file, does not."""
    port = free_port()
    with web_process(tmp_path, port) as server, visitor(port) as newcomer:
        file = tmp_path / "var" / "worldsize.sqlite3"
        url = f"sqlite:///{file}"
        before = rows(url)
        with limited(server, PAGE * (root_page(file, lacking) - 1)):
            is_refused_in_words(post, newcomer)
        assert rows(url) == before
        is_kept(post, newcomer, url)


def root_page(file: Path, table: str) -> int:
    """Where in the file a table begins, counted from one; those of our size are no longer than this page."""
    with closing(sqlite3.connect(file)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", [table]).fetchone()
    return int(page)


def visitor(port: int) -> Client:
    return Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE)


@pytest.fixture
def impatient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FastAPI]:
    """A site that does not wait for a lock of somebody else."""
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0)
    app = make_app(tmp_path)
    yield app
    app.state.site.database.close()


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Somebody else has the database to himself."""
    with closing(sqlite3.connect(file, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        yield
        lock.execute("ROLLBACK")


def test_in_a_locked_database_nothing_is_half_kept_and_afterwards_all_is(impatient: FastAPI) -> None:
    known = TestClient(impatient, follow_redirects=False)
    known.get(LESSON)
    url = impatient.state.site.settings.storage_url
    before = rows(url)
    with locked(impatient.state.site.database.file):
        nothing_is_kept_of_what_is_refused([TestClient(impatient, follow_redirects=False), known])
        assert known.get("/healthz").status_code == 200
    assert rows(url) == before
    all_is_kept(known, url)


@pytest.mark.postgres
def test_without_the_database_server_nothing_is_half_kept_and_once_it_is_back_all_is(tmp_path: Path) -> None:
    with running_postgres() as server:
        server.execute("CREATE DATABASE web")
        app = make_app(tmp_path, database_url=server.url("web"))
        known = TestClient(app, follow_redirects=False)
        known.get(LESSON)
        before = rows(server.url("web"))
        server.stop()
        nothing_is_kept_of_what_is_refused([TestClient(app, follow_redirects=False), known])
        server.start()
        assert rows(server.url("web")) == before
        all_is_kept(known, server.url("web"))
        app.state.site.database.close()
