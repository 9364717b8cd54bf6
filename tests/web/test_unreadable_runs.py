"""What another version stored of a run breaks no page: not its own, and not the lesson of whoever asked for it."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.tables import runs
from tests.web.runs_made_up import EXPERIMENT, database_of, finish, press, run_id_of, take
from tests.web.sites import LESSON

ADDRESSES = ("/runs/{}", f"/runs/{{}}?of={EXPERIMENT}", "/runs/{}/status", f"/runs/{{}}/status?of={EXPERIMENT}",
             "/runs/{}/script", "/runs/{}/notebook", "/api/runs/{}")
NEWER = {"spec": {"P": 4, "experiments": [], "of_another_version": 1}}


def alter(app: FastAPI, run_id: str, **values: Any) -> None:
    with database_of(app).writing() as session:
        session.execute(runs.update().where(runs.c.id == run_id).values(**values))


@pytest.mark.parametrize("state", ["queued", "running", "done"])
def test_a_run_whose_spec_cannot_be_read_is_told_in_words_everywhere(web_app: FastAPI, client: TestClient, state: str) -> None:
    run_id = run_id_of(press(client, P=4))
    if state != "queued":
        lease = take(web_app, run_id)
        if state == "done":
            finish(web_app, lease)
    alter(web_app, run_id, **NEWER)
    for address in ADDRESSES:
        response = client.get(address.format(run_id))
        assert response.status_code == 404, address
        assert "stored by another version of World Size" in response.text, address
    assert "This run cannot be read here" in client.get(f"/runs/{run_id}").text
    for address, data in ((f"/runs/{run_id}/cancel", {}), ("/runs", {"again": run_id}),
                          (f"/runs/{run_id}/forget?of={EXPERIMENT}", {})):
        assert client.post(address, data=data).status_code < 500, address
    page = client.get(LESSON)
    assert page.status_code == 200
    assert run_id not in page.text


def test_a_result_that_cannot_be_read_is_a_run_without_a_result_that_can_be_started_again(
    web_app: FastAPI, client: TestClient
) -> None:
    run_id = run_id_of(press(client, P=2))
    finish(web_app, take(web_app, run_id))
    alter(web_app, run_id, report={"of_another_version": 1})
    for address in ADDRESSES:
        assert client.get(address.format(run_id)).status_code == 200, address
    for page in (client.get(f"/runs/{run_id}").text, client.get(LESSON).text):
        assert "The run ended without a result." in page
        assert "another version of World Size, and this one cannot read it" in page
        assert "Run again" in page
    told = client.get(f"/api/runs/{run_id}").json()
    assert (told["state"], told["reports"], told["failure"]["exit"]) == ("failed", [], "unreadable")
    again = client.post("/runs", data={"again": run_id})
    assert again.status_code == 303
    assert run_id_of(again) != run_id
