"""Which rooms of the web are tested on both kinds of database: those where a request reads or writes what learners leave."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import text

from app.db import Database
from app.tables import metadata, probes
from tests.databases import BOTH_KINDS, PostgresServer, empty_postgres, migrated
from tests.web import sites

ON_BOTH = ("test_checkpoints", "test_error_pages", "test_health", "test_learner", "test_metrics", "test_predictions",
           "test_proxies", "test_run_api", "test_run_endings", "test_run_notes", "test_runs", "test_schema", "test_timing_runs",
           "test_unreadable_runs")
# What a site is made with. A test of SQLite's own file asks for `sqlite_app`, and so for one kind alone.
SITES = {"tmp_path", "web_app"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test of these rooms that makes or visits a site, on each kind in turn."""
    asked_for = set(metafunc.fixturenames)
    if metafunc.module.__name__.rpartition(".")[2] in ON_BOTH and asked_for & SITES and "sqlite_app" not in asked_for:
        metafunc.parametrize("storage", BOTH_KINDS, indirect=True)


@pytest.fixture(scope="session")
def shared_postgres(postgres_server: PostgresServer) -> Iterator[Database]:
    """Of all tests with sites of their own: to make one for each would take longer than most of them."""
    with empty_postgres(postgres_server) as url, migrated(url) as database:
        yield database


@pytest.fixture
def emptied_postgres(shared_postgres: Database) -> Database:
    """That one as it was when it was new."""
    tables = ", ".join(name for name in metadata.tables if name != probes.name)
    with shared_postgres.writing() as session:
        session.execute(text(f"TRUNCATE {tables} RESTART IDENTITY"))
        session.execute(probes.update().values(count=0))
    return shared_postgres


@pytest.fixture(autouse=True)
def storage(request: pytest.FixtureRequest) -> Iterator[str]:
    """The kind of database, named to the sites of a test as an operator would name it; SQLite in their folder unless told."""
    kind: str = getattr(request, "param", "sqlite")
    if kind == "sqlite" or "tmp_path" not in request.fixturenames:
        yield kind
        return
    database: Database = request.getfixturevalue("emptied_postgres")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORLDSIZE_DATABASE_URL", database.engine.url.render_as_string())
        with ExitStack() as at_the_end:
            create_app = sites.create_app

            def create(*given: Any, **chosen: Any) -> FastAPI:
                """What a test does not close itself would be complained about later, in any other test."""
                app = create_app(*given, **chosen)
                at_the_end.callback(app.state.site.database.close)
                return app

            patch.setattr(sites, "create_app", create)
            yield kind


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    """A site of its own: what waits in its queue is this test's alone."""
    app = sites.make_app(tmp_path)
    yield app
    app.state.site.database.close()


@pytest.fixture
def learner(app: FastAPI) -> TestClient:
    return TestClient(app, follow_redirects=False)
