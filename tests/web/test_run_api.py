"""Runs as JSON: asked for, read back, refused with a message for each field."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.runs.store import State
from app.runs.stored import Failure
from tests.web.runs_made_up import end, finish, take
from tests.web.sites import make_app


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    app = make_app(tmp_path)
    yield app
    app.state.site.database.close()


@pytest.fixture
def client(app: FastAPI) -> TestClient:
    return TestClient(app)


def ask(client: TestClient, **body: Any) -> str:
    response = client.post("/api/runs", json=body)
    assert response.status_code == 202, response.text
    run_id: str = response.json()["id"]
    return run_id


def test_one_strategy_is_asked_for_and_read_when_it_is_done(app: FastAPI, client: TestClient) -> None:
    run_id = ask(client, strategy="data_parallel", P=4, L=2, H=4)
    assert client.get(f"/api/runs/{run_id}").json()["state"] == "queued"
    assert client.get(f"/api/runs/{run_id}").json()["position"] == 1
    finish(app, take(app, run_id))
    run = client.get(f"/api/runs/{run_id}").json()
    assert (run["id"], run["state"]) == (run_id, "done")
    assert run["reports"][0]["measured"]["payload_bytes_by_rank"] == [192] * 4
    assert run["reports"][0]["verdict"] == "equal"
    assert set(run["timings"]) == {"queued", "launching", "warming_up", "measuring"}


def test_several_experiments_are_one_run(client: TestClient) -> None:
    experiments = [{"strategy": "data_parallel", "options": {"sync": "per_parameter"}}, {"strategy": "pipeline_gpipe", "m": 2}]
    run = client.get(f"/api/runs/{ask(client, P=2, experiments=experiments)}").json()
    assert [one["strategy"] for one in run["spec"]["experiments"]] == ["data_parallel", "pipeline_gpipe"]
    assert run["spec"]["experiments"][0]["options"] == {"sync": "per_parameter"}
    assert run["reports"] == []


def test_the_same_again_is_joined_and_a_fresh_one_is_not_the_earlier(app: FastAPI, client: TestClient) -> None:
    first = ask(client, strategy="data_parallel", P=2)
    assert ask(TestClient(app), strategy="data_parallel", P=2) == first
    finish(app, take(app, first))
    assert client.post("/api/runs", json={"strategy": "data_parallel", "P": 2}).json() == {"id": first, "shared": "earlier"}
    assert ask(client, strategy="data_parallel", P=2, fresh=True) != first


def test_a_failure_is_read_with_its_rank_and_log(app: FastAPI, client: TestClient) -> None:
    run_id = ask(client, strategy="data_parallel", P=2)
    why = Failure("Rank 1 left.", rank=1, exit="exit code 3", phase="measuring", log_tail="bye")
    end(app, take(app, run_id), State.FAILED, why)
    run = client.get(f"/api/runs/{run_id}").json()
    assert run["state"] == "failed"
    assert (run["failure"]["rank"], run["failure"]["exit"], run["failure"]["log_tail"]) == (1, "exit code 3", "bye")


@pytest.mark.parametrize(("body", "field", "words"), [
    ({"strategy": "telepathy"}, "strategy", "unknown; choose one of"),
    ({"strategy": "data_parallel", "P": 9}, "P", "must be a whole number from 1 to 8"),
    ({"strategy": "tensor_parallel", "P": 3}, "P", "does not divide H = 4"),
    ({"strategy": "data_parallel", "options": {"sync": "never"}}, "sync", "must be one of"),
    ({"P": 2, "experiments": [{"strategy": "data_parallel"}] * 13}, "experiments", "at most 12 in one run"),
])
def test_what_cannot_run_is_refused_by_field(client: TestClient, body: dict[str, Any], field: str, words: str) -> None:
    response = client.post("/api/runs", json=body)
    assert response.status_code == 422
    assert words in response.json()["fields"][field]


@pytest.mark.parametrize("body", [
    {}, {"strategy": 4}, {"strategy": "ddp", "shell": "rm"}, {"experiments": []}, [], "ddp", None])
def test_a_body_of_another_shape_is_refused(client: TestClient, body: Any) -> None:
    assert client.post("/api/runs", json=body).status_code == 422


@pytest.mark.parametrize(("body", "fields"), [
    ({}, {"strategy": "is missing"}),
    ([], {"body": "must be an object, in braces"}),
    ({"strategy": "ddp", "P": 4.5}, {"P": "must be a whole number"}),
    ({"strategy": "ddp", "shell": "rm"}, {"shell": "is not known here"}),
    ({"strategy": "ddp", "options": {"sync": {"a": 1}}},
     {"sync": "must be a word of at most 40 letters, a whole number, true or false"}),
    ({"experiments": [1]}, {"experiments": "must be an object, in braces"}),
    ({"experiments": [{"strategy": "ddp", "L": "x"}]}, {"L": "must be a whole number"}),
])
def test_a_fault_is_told_once_at_the_field_that_has_it(client: TestClient, body: Any, fields: dict[str, str]) -> None:
    assert client.post("/api/runs", json=body).json()["fields"] == fields


def test_what_is_not_json_is_told_so(client: TestClient) -> None:
    response = client.post("/api/runs", content="{", headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["fields"]) == (422, {"body": "is not JSON"})


def test_an_unknown_run_is_not_found_in_json(client: TestClient) -> None:
    response = client.get("/api/runs/nothing")
    assert response.status_code == 404
    told = {"error": "Nothing lives at this address", "message": "There is no run called 'nothing'.", "fields": {}}
    assert response.json() == told


def test_a_run_is_in_no_cache_and_says_nothing_of_who_asked(client: TestClient) -> None:
    response = client.get(f"/api/runs/{ask(client, strategy='ddp', P=2)}")
    assert response.headers["cache-control"] == "no-store"
    assert "asked_by" not in response.text


def test_a_quota_is_429_with_when_to_come_again(tmp_path: Path) -> None:
    app = make_app(tmp_path / "other", run_quota=1)
    client = TestClient(app)
    ask(client, strategy="ddp", P=2)
    response = client.post("/api/runs", json={"strategy": "ddp", "P": 3})
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) > 0
    app.state.site.database.close()
