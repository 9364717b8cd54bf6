"""Each error has its status, in the shape that whoever asked can use, and says what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.web import learner
from tests.web.runs_made_up import EXPERIMENT
from tests.web.sites import LESSON, make_app

HTMX = {"HX-Request": "true"}


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    """A site whose /me fails in a way that nobody foresaw."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("an answer must not be shown")

    app = make_app(tmp_path)
    monkeypatch.setattr(learner, "past", fail)
    yield TestClient(app, raise_server_exceptions=False)
    app.state.site.database.close()


def test_an_unknown_address_is_answered_with_the_map(client: TestClient) -> None:
    response = client.get("/lessons/nothing")
    assert response.status_code == 404
    assert "no lesson called" in response.text
    assert "These are the lessons." in response.text
    assert response.text.count('class="i"') == 11


def test_htmx_gets_a_notice_for_its_own_place(client: TestClient) -> None:
    response = client.get("/nothing", headers=HTMX)
    assert response.status_code == 404
    assert (response.headers["hx-retarget"], response.headers["hx-reswap"]) == ("#notice", "innerHTML")
    assert "<html" not in response.text


def test_after_back_htmx_gets_the_whole_page(client: TestClient) -> None:
    response = client.get(LESSON, headers={**HTMX, "HX-History-Restore-Request": "true"})
    assert response.text.startswith("<!doctype html>")


def test_programs_get_json(client: TestClient) -> None:
    response = client.get("/api/nothing")
    told = {"error": "Nothing lives at this address", "message": "The link may be old, or a letter is missing.", "fields": {}}
    assert (response.status_code, response.json()) == (404, told)


@pytest.mark.parametrize(("method", "address"), [("PUT", "/"), ("DELETE", LESSON), ("POST", "/"), ("GET", "/theme")])
def test_a_method_that_an_address_does_not_take_is_answered_in_words(client: TestClient, method: str, address: str) -> None:
    response = client.request(method, address)
    assert response.status_code == 405
    assert "<h1>" in response.text
    assert response.headers["allow"]


def test_a_damaged_form_is_answered_with_400(client: TestClient) -> None:
    headers = {"content-type": "multipart/form-data; boundary=x"}
    assert client.post("/theme", content=b"--x\r\nbroken", headers=headers).status_code in (400, 422)


def test_a_form_that_cannot_be_used_names_the_field(client: TestClient) -> None:
    response = client.post("/theme", data={"theme": "red"})
    assert response.status_code == 422
    assert "<b>theme</b>" in response.text
    assert "Nothing was stored." in response.text


def test_an_unforeseen_error_shows_an_id_and_nothing_of_itself(broken: TestClient) -> None:
    response = broken.get("/me")
    assert response.status_code == 500
    assert response.headers["x-request-id"] in response.text
    assert "an answer must not be shown" not in response.text
    assert "ZeroDivisionError" not in response.text
    assert "script-src 'self'" in response.headers["content-security-policy"]
    assert broken.get("/").status_code == 200


def test_an_unforeseen_error_under_htmx_is_a_notice(broken: TestClient) -> None:
    response = broken.get("/me", headers=HTMX)
    assert response.headers["hx-retarget"] == "#notice"
    assert response.headers["x-request-id"] in response.text


NO_RUN = "/runs/%00"


@pytest.mark.parametrize("address", [NO_RUN, f"{NO_RUN}/status", f"{NO_RUN}/script", f"{NO_RUN}/notebook", "/api/runs/%00"])
def test_a_run_that_no_database_can_look_for_is_not_found(client: TestClient, address: str) -> None:
    """PostgreSQL has no texts with a NUL."""
    assert client.get(address).status_code == 404


@pytest.mark.parametrize(("address", "form"), [(f"{NO_RUN}/cancel", {}), (f"{NO_RUN}/forget?of={EXPERIMENT}", {}),
                                               ("/runs", {"again": "\0"})])
def test_nothing_is_done_with_a_run_that_no_database_can_look_for(
    client: TestClient, address: str, form: dict[str, str]
) -> None:
    client.get(LESSON)
    client.post(f"{LESSON}/visits", data={"section": "play"})
    assert client.post(address, data=form).status_code == 404
