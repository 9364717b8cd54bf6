"""The process answers; it is ready when what it writes can be read back."""

from __future__ import annotations

from fastapi.testclient import TestClient


def test_a_ready_site_says_so_and_whether_runs_are_on(client: TestClient) -> None:
    response = client.get("/readyz")
    assert response.status_code == 200
    assert (response.json()["status"], response.json()["runs"]) == ("ready", True)
    assert response.headers["cache-control"] == "no-store"


def test_docs_are_off_unless_asked_for(client: TestClient) -> None:
    for address in ("/docs", "/redoc", "/openapi.json"):
        assert client.get(address).status_code == 404
