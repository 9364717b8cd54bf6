"""Fixtures of the web's tests: an application on a data folder of its own, clients, a live server."""

from __future__ import annotations

import shutil
import socket
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI

from app import settings
from app.main import create_app
from tests.databases import PostgresServer, empty_postgres

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", ".*httpx.*")  # starlette would rather have httpx2; httpx serves
    from fastapi.testclient import TestClient

LESSON = "/lessons/split-three-ways"


def make_app(folder: Path, *, docs: bool = False, lessons: Sequence[str] = (), **chosen: Any) -> FastAPI:
    """A site whose course has the flagship and the `lessons` named, all others still to come: each is tested on its own."""
    chosen.setdefault("learner_quota", 1_000_000)  # each test is a new learner, and all come from one address
    chosen.setdefault("hosts", "testserver")  # what the test client asks for
    course = folder / "course"
    if not course.exists():
        for slug in ("split-three-ways", *lessons):
            shutil.copytree(settings.COURSE_DIR / slug, course / slug)
        shutil.copy(settings.COURSE_DIR / "course.yaml", course)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "COURSE_DIR", course)
        return create_app(settings.Settings.load(data_dir=folder, **chosen), docs=docs)


@pytest.fixture(scope="session")
def sqlite_app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """One application for all tests that need no settings of their own: each learner has a cookie of their own."""
    app = make_app(tmp_path_factory.mktemp("web"))
    yield app
    app.state.site.database.close()


@pytest.fixture(scope="session")
def postgres_app(tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer) -> Iterator[FastAPI]:
    """The same on PostgreSQL."""
    with empty_postgres(postgres_server) as url:
        app = make_app(tmp_path_factory.mktemp("web"), database_url=url)
        yield app
        app.state.site.database.close()


@pytest.fixture
def web_app(request: pytest.FixtureRequest) -> FastAPI:
    """The one of both on the kind of database that the test is for."""
    kind = request.getfixturevalue("storage") if "storage" in request.fixturenames else "sqlite"
    app: FastAPI = request.getfixturevalue(f"{kind}_app")
    return app


@pytest.fixture
def client(web_app: FastAPI) -> TestClient:
    """A browser that has never been here. It does not follow redirects, so that tests see them."""
    return TestClient(web_app, follow_redirects=False)


@pytest.fixture(scope="session")
def live_url(sqlite_app: FastAPI) -> Iterator[str]:
    """An application behind a real socket."""
    with serving(sqlite_app) as url:
        yield url


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """The address of an application behind a real socket, for as long as the block runs."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_keep_alive=600))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
