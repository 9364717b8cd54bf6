"""GET /api/predict/{strategy}: the schema of the command line, with every refusal naming its field."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from kernels.spec import STRATEGY_SPECS


@pytest.mark.parametrize(("strategy", "query", "per_gpu", "total"), [
    ("data_parallel", "", 48, 192),
    ("tensor_parallel", "", 24, 96),
    ("pipeline_gpipe", "", 4, 8),
    ("data_parallel", "P=8", 56, 448),
    ("data_parallel", "P=1", 0, 0),
])
def test_the_flagship_numbers(client: TestClient, strategy: str, query: str, per_gpu: int, total: int) -> None:
    predicted = client.get(f"/api/predict/{strategy}?{query}").json()["predicted"]
    assert (predicted["per_gpu_elements"]["mean"], predicted["total_elements"]) == (per_gpu, total)


def test_tensor_on_eight_gpus_of_width_four_runs_on_four(client: TestClient) -> None:
    body = client.get("/api/predict/tensor_parallel?P=8").json()
    assert body["predicted"]["per_gpu_elements"]["mean"] == 28
    assert body["backend_predicted"]["per_gpu_elements"]["mean"] == 24
    assert "idle_gpus" in body["ideal_gap"]["causes"]
    assert (body["measured"], body["verdict"]) == (None, None)


@pytest.mark.parametrize("strategy", STRATEGY_SPECS)
def test_every_strategy_has_a_prediction(client: TestClient, strategy: str) -> None:
    assert client.get(f"/api/predict/{strategy}").json()["strategy"] == strategy


def test_a_prediction_goes_further_than_a_run(client: TestClient) -> None:
    predicted = client.get("/api/predict/data_parallel?P=4096").json()["predicted"]
    assert predicted["per_gpu_elements"]["mean"] == pytest.approx(63.98, abs=0.01)


def test_options_of_a_strategy_are_keys_of_the_query(client: TestClient) -> None:
    body = client.get("/api/predict/ring_all_reduce?collective=all_gather&elements=40").json()
    assert body["spec"]["options"] == {"collective": "all_gather", "elements": 40}


def test_a_prediction_may_be_kept_for_a_while_and_a_refusal_may_not(client: TestClient) -> None:
    assert client.get("/api/predict/data_parallel").headers["cache-control"] == "public, max-age=300"
    assert client.get("/api/predict/data_parallel?P=0").headers["cache-control"] == "no-store"
    assert client.get("/api/predict/data_parallel?colour=red").headers["cache-control"] == "no-store"


@pytest.mark.parametrize(("path", "field"), [
    ("data_parallel?P=0", "P"), ("data_parallel?P=4097", "P"), ("data_parallel?P=x", "P"), ("data_parallel?L=-1", "L"),
    ("nothing", "strategy"), ("data_parallel?backend=mpi", "backend"), ("data_parallel?colour=red", "colour"),
    ("ring_all_reduce?collective=gossip", "collective"), ("ring_all_reduce?elements=many", "elements"),
    ("ring_all_reduce?elements=99999999999999999999", "elements"), ("data_parallel?H=65", "H"),
])
def test_a_refusal_names_the_field_and_what_is_allowed(client: TestClient, path: str, field: str) -> None:
    response = client.get(f"/api/predict/{path}")
    assert response.status_code == 422
    assert list(response.json()["fields"]) == [field]
