"""X-Forwarded headers count only when they come from a proxy that the settings name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.web.sites import LESSON, make_app

FORWARDED = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
PROXY, STRANGER = ("10.1.2.3", 50000), ("192.0.2.9", 50000)


@pytest.fixture(scope="module")
def behind_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    app = make_app(tmp_path_factory.mktemp("proxy"), trusted_proxies="10.0.0.0/8")
    yield app
    app.state.site.database.close()


def cookie(app: FastAPI, peer: tuple[str, int]) -> str:
    return TestClient(app, client=peer).get(LESSON, headers=FORWARDED).headers["set-cookie"]


def test_a_trusted_proxy_says_that_the_visitor_came_by_https(behind_proxy: FastAPI) -> None:
    assert cookie(behind_proxy, PROXY).startswith("__Host-learner=")


def test_a_stranger_cannot_say_so(behind_proxy: FastAPI, web_app: FastAPI) -> None:
    assert cookie(behind_proxy, STRANGER).startswith("learner=")
    assert cookie(web_app, PROXY).startswith("learner=")


def test_a_well_formed_request_id_of_a_trusted_proxy_is_kept_and_any_other_replaced(behind_proxy: FastAPI) -> None:
    def returned(peer: tuple[str, int], told: str) -> str:
        headers = {**FORWARDED, "X-Request-ID": told}
        return TestClient(behind_proxy, client=peer).get("/healthz", headers=headers).headers["x-request-id"]

    assert returned(PROXY, "proxy-12345678") == "proxy-12345678"
    assert returned(STRANGER, "proxy-12345678") != "proxy-12345678"
    for bad in ("short", "x" * 65, 'a"b,c{d}efgh', "line\\nbreak1"):
        assert returned(PROXY, bad) != bad


def test_behind_a_trusted_proxy_the_visitors_are_counted_and_a_stranger_cannot_choose_an_address(tmp_path: Path) -> None:
    app = make_app(tmp_path, trusted_proxies="10.0.0.0/8", learner_quota=1)

    def begins(peer: tuple[str, int], told: str) -> int:
        client = TestClient(app, client=peer, follow_redirects=False)
        return client.post(f"{LESSON}/visits", data={"section": "play"}, headers={"X-Forwarded-For": told}).status_code

    assert [begins(PROXY, "203.0.113.7"), begins(PROXY, "203.0.113.8"), begins(PROXY, "203.0.113.7")] == [303, 303, 429]
    assert [begins(STRANGER, "203.0.113.9"), begins(STRANGER, "203.0.113.10")] == [303, 429]
    app.state.site.database.close()
