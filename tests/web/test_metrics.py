"""/metrics answers only where it was asked for, and counts runs and requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from tests.web.runs_made_up import finish, press, run_id_of, take
from tests.web.sites import make_app


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    app = make_app(tmp_path, metrics=True)
    yield app
    app.state.site.database.close()


def samples(client: TestClient) -> dict[tuple[str, ...], float]:
    """Value by name and labels."""
    response = client.get("/metrics")
    assert response.status_code == 200
    families = text_string_to_metric_families(response.text)
    return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


def test_what_is_tested_on_both_kinds_of_database_is_on_the_one_that_it_is_named_for(
    app: FastAPI, web_app: FastAPI, storage: str
) -> None:
    for one in (app, web_app):
        assert one.state.site.database.engine.dialect.name.startswith(storage)


def test_metrics_are_not_found_unless_a_setting_asks_for_them(client: TestClient) -> None:
    assert client.get("/metrics").status_code == 404


def test_runs_are_counted_by_outcome_and_their_seconds_by_phase(app: FastAPI) -> None:
    client = TestClient(app)
    run_id = run_id_of(press(client, P=4))
    assert samples(client)["worldsize_queue_depth",] == 1
    finish(app, take(app, run_id))
    after = samples(client)
    assert after["worldsize_queue_depth",] == 0
    assert after["worldsize_runs_ended_total", "done"] == 1
    assert after["worldsize_run_seconds_count", "measuring"] == 1
    assert after["worldsize_run_seconds_sum", "measuring"] == pytest.approx(0.6)


def test_requests_are_counted_by_route_and_never_by_address(app: FastAPI) -> None:
    client = TestClient(app)
    before = samples(client).get(("worldsize_requests_total", "GET", "/lessons/{slug}", "404"), 0)
    client.get("/lessons/secret-one")
    client.request("BREW", "/")
    after = samples(client)
    assert after["worldsize_requests_total", "GET", "/lessons/{slug}", "404"] == before + 1
    assert not any("secret-one" in word or word == "BREW" for key in after for word in key)
