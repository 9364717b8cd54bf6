"""The guess made before anything is shown: kept once, shown again beside the answer."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from tests.web.sites import LESSON

GUESS = f"{LESSON}/predictions/most-traffic"
HTMX = {"HX-Request": "true"}
RECALLED = "You guessed the matrices."


def test_a_guess_is_kept_and_shown_again_after_the_figure(client: TestClient) -> None:
    assert RECALLED not in client.get(LESSON).text
    response = client.post(GUESS, data={"answer": "tensor"})
    assert (response.status_code, response.headers["location"]) == (303, f"{LESSON}#prediction-most-traffic")
    page = client.get(LESSON).text
    assert "Your guess is kept" in page
    assert page.index('id="volume"') < page.index(RECALLED)


def test_htmx_gets_the_form_and_what_fills_the_place_of_the_reminder(client: TestClient) -> None:
    response = client.post(GUESS, data={"answer": "tensor"}, headers=HTMX)
    assert 'id="recall-most-traffic" hx-swap-oob="innerHTML"' in response.text
    assert RECALLED in response.text


def test_the_first_guess_is_the_one_that_stays(client: TestClient) -> None:
    client.get(LESSON)
    client.post(GUESS, data={"answer": "tensor"})
    client.post(GUESS, data={"answer": "data"}, headers=HTMX)
    assert RECALLED in client.get(LESSON).text
    assert [guess["answer"] for guess in client.get("/me/export").json()["predictions"]] == ["tensor"]


@pytest.mark.parametrize("answer", ["", "nothing", "Tensor"])
def test_a_form_without_a_choice_comes_back_with_a_message(client: TestClient, answer: str) -> None:
    for headers in ({}, HTMX):
        response = client.post(GUESS, data={"answer": answer}, headers=headers)
        assert response.status_code == 422
        assert "Choose one of them first." in response.text
    assert client.get("/me/export").json()["predictions"] == []


def test_a_prediction_that_is_not_there_is_not_found(client: TestClient) -> None:
    assert client.post(f"{LESSON}/predictions/nothing", data={"answer": "tensor"}).status_code == 404
