"""The process answers; it is ready when what it writes can be read back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.errors import StorageRefused
from app.tables import probes
from app.web.health import HOLDS_SECONDS, Readiness


class Storage:
    """Counts who looks; refuses while it is broken."""

    def __init__(self) -> None:
        self.broken = False
        self.looks = 0
        self.now = 0.0

    def look(self) -> None:
        self.looks += 1
        if self.broken:
            raise StorageRefused("The disk is full.", "Make room.")

    def clock(self) -> float:
        return self.now


def test_a_ready_site_says_so_and_whether_runs_are_on(client: TestClient) -> None:
    response = client.get("/readyz")
    assert response.status_code == 200
    assert (response.json()["status"], response.json()["runs"]) == ("ready", True)
    assert response.headers["cache-control"] == "no-store"


def test_asking_often_does_not_write_often(
    web_app: FastAPI, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def written() -> int:
        with web_app.state.site.database.reading() as session:
            return int(session.execute(select(probes.c.count)).scalar_one())

    readiness = web_app.state.readiness
    monkeypatch.setattr(readiness, "_clock", lambda: 0.0)
    monkeypatch.setattr(readiness, "_due", 0.0)
    before = written()
    assert {client.get("/readyz").status_code for _ in range(10)} == {200}
    assert written() == before + 1


def test_what_was_seen_holds_for_a_while_and_no_longer() -> None:
    storage = Storage()
    readiness = Readiness(storage.look, storage.clock)
    assert readiness.holds()
    storage.broken = True
    storage.now += HOLDS_SECONDS / 2
    assert readiness.holds()
    storage.now += HOLDS_SECONDS / 2
    assert not readiness.holds()
    storage.broken = False
    storage.now += HOLDS_SECONDS
    assert readiness.holds()
    assert storage.looks == 3


def test_nobody_waits_for_somebody_else_to_look() -> None:
    storage, looking, go_on, told = Storage(), threading.Event(), threading.Event(), []

    def look() -> None:
        storage.look()
        if storage.looks == 2:
            looking.set()
            told.append(go_on.wait(10))

    readiness = Readiness(look, storage.clock)
    assert readiness.holds()
    storage.now += HOLDS_SECONDS
    with ThreadPoolExecutor(1) as pool:
        looks = pool.submit(readiness.holds)
        looking.wait()
        assert [readiness.holds() for _ in range(5)] == [True] * 5
        go_on.set()
        assert looks.result()
    assert (storage.looks, told) == (2, [True])


def test_docs_are_off_unless_asked_for(client: TestClient) -> None:
    for address in ("/docs", "/redoc", "/openapi.json"):
        assert client.get(address).status_code == 404
