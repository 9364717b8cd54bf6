"""The note beside the button: what stands in the way at the figure's values, and whose values the result below has."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event

from app.runs.store import State
from tests.runs.asking import show_worker
from tests.web.runs_made_up import EXPERIMENT, HTMX, database_of, end, finish, press, run_id_of, take
from tests.web.sites import LESSON

NOTE = "/lessons/{}/experiments/{}/note".format(*EXPERIMENT.split("/"))
AT_4 = {"volume.P": "4", "volume.L": "2", "volume.H": "4", "volume.T": "1", "volume.batch": "taught"}
APART = re.compile(r'<p class="apart">(.*?)</p>')


@pytest.fixture
def measured(app: FastAPI, learner: TestClient) -> str:
    """The learner's own result at the values that the lesson starts from."""
    run_id = run_id_of(press(learner, live=AT_4))
    finish(app, take(app, run_id))
    return run_id


def note(client: TestClient, shown: str = "recorded", about: str = "", **values: str) -> str:
    """What the page gets once its figure has settled at these values."""
    live = {**AT_4, **{f"volume.{name}": value for name, value in values.items()}}
    response = client.get(NOTE, params={**live, "shown": shown, "about": about}, headers=HTMX)
    assert response.status_code == 200
    assert response.headers["cache-control"] == "no-store"
    html: str = response.text.replace("\N{NO-BREAK SPACE}", " ")
    return html


def apart(html: str) -> str:
    found = APART.search(html.replace("\N{NO-BREAK SPACE}", " "))
    return "" if found is None else found[1]


def test_a_result_of_other_values_is_told_with_its_own_and_the_figure_s(learner: TestClient, measured: str) -> None:
    told = apart(note(learner, measured, P="8", H="8"))
    assert told == "Measured at P = 4, L = 2, H = 4, T = 1. The figure now stands at P = 8 and H = 8."
    assert apart(note(learner, measured)) == ""


def test_equal_batches_are_other_values_too(app: FastAPI, learner: TestClient, measured: str) -> None:
    assert apart(note(learner, measured, batch="equal")).endswith("The figure now stands at equal batches.")
    equal = run_id_of(press(learner, live={**AT_4, "volume.batch": "equal"}))
    finish(app, take(app, equal))
    assert apart(note(learner, equal)).endswith("The figure now stands at batches as taught.")
    assert apart(note(learner, equal, batch="equal")) == ""
    assert apart(note(learner, equal, batch="equal", T="2")).endswith("The figure now stands at T = 2.")


def test_a_page_without_a_script_says_the_same(learner: TestClient, measured: str) -> None:
    assert apart(learner.get(LESSON).text) == ""
    told = apart(learner.get(f"{LESSON}?volume.P=8").text)
    assert told == "Measured at P = 4, L = 2, H = 4, T = 1. The figure now stands at P = 8."


def test_the_recorded_run_has_values_of_its_own_too(learner: TestClient) -> None:
    assert apart(note(learner, T="2")) == "Recorded at P = 4, L = 2, H = 4, T = 1. The figure now stands at T = 2."
    assert apart(learner.get(f"{LESSON}?volume.T=2").text).startswith("Recorded at P = 4")


def test_a_run_without_a_result_was_tried_at_its_values(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, live=AT_4))
    end(app, take(app, run_id), State.FAILED)
    assert apart(note(learner, run_id, L="3")).startswith("Tried at P = 4")


def test_a_result_that_comes_after_the_sliders_have_moved_says_so(app: FastAPI, learner: TestClient) -> None:
    """The poll carries the figure's values of its own moment."""
    run_id = run_id_of(press(learner, live=AT_4))
    finish(app, take(app, run_id))
    moved = {**AT_4, "volume.P": "2", "of": EXPERIMENT}
    html = learner.get(f"/runs/{run_id}/status", params=moved, headers=HTMX).text
    assert apart(html).endswith("The figure now stands at P = 2.")


def test_a_strategy_that_cannot_run_is_told_before_anybody_presses(learner: TestClient, measured: str) -> None:
    told = note(learner, P="3")
    assert "Tensor parallel cannot run there: min(P, H) = 3 does not divide H = 4" in told
    assert "The others can." in told
    page = learner.get(f"{LESSON}?volume.P=3").text
    assert "Tensor parallel cannot run there" in page


def test_a_value_over_the_cap_is_told_before_anybody_presses(learner: TestClient) -> None:
    assert "This server runs at most 8 processes, and the figure has 64. Put P at 8 or less." in note(learner, P="64")


def test_where_the_figure_goes_beyond_the_cap_the_note_says_how_far_a_run_does(app: FastAPI, learner: TestClient) -> None:
    show_worker(database_of(app))
    assert "at the values of the figure; here at most 8. It takes a few seconds." in note(learner)


def test_while_no_worker_is_there_the_note_says_so(learner: TestClient) -> None:
    assert "A run would wait until one is there." in note(learner)


def test_values_that_the_figure_refuses_change_nothing(learner: TestClient) -> None:
    assert learner.get(NOTE, params={**AT_4, "volume.P": "many"}, headers=HTMX).status_code == 204


def test_what_is_new_is_announced_once_and_not_each_value_on_the_way(learner: TestClient, measured: str) -> None:
    def said(html: str) -> str:
        found = re.search(r'<p id="run-three-cuts-says"[^>]*>(.*?)</p>', html)
        return "" if found is None else found[1]

    assert said(note(learner, measured)) == ""
    assert said(note(learner, measured, P="2")).startswith("Measured at P = 4")
    assert said(note(learner, measured, "apart", P="8")) == ""
    assert "Tensor parallel cannot run" in said(note(learner, measured, "apart", P="3"))
    assert said(note(learner, measured, "apart left-out", P="3", T="2")) == ""
    assert said(note(learner, measured, "apart")) == "The figure stands again at the values of what is shown below."


def test_the_note_takes_an_earlier_refusal_away(learner: TestClient) -> None:
    assert '<div id="run-three-cuts-refusal" hx-swap-oob="innerHTML"></div>' in note(learner)


def test_the_note_is_no_live_region_itself(learner: TestClient) -> None:
    page = learner.get(LESSON).text
    opening = re.search(r'<div class="told"[^>]*>', page)
    assert opening is not None
    assert "aria-live" not in opening[0]
    assert "role=" not in opening[0]


def test_a_note_reads_no_report(app: FastAPI, learner: TestClient, measured: str) -> None:
    """A slider asks often: two small queries at most, none of them for a run's report."""
    asked: list[str] = []
    engine = database_of(app).engine
    event.listen(engine, "before_cursor_execute", lambda *call: asked.append(call[2]))
    note(learner, measured, P="8")
    queries = [one for one in asked if one.lstrip().upper().startswith("SELECT")]
    assert 1 <= len(queries) <= 3
    assert not any("report" in one for one in queries), queries


def test_the_figure_s_own_fragment_knows_nothing_of_runs(learner: TestClient, measured: str) -> None:
    response = learner.get("/figures/volume", params={**AT_4, "volume.P": "8"}, headers=HTMX)
    assert response.headers["cache-control"].startswith("public")
    assert "Measured" not in response.text
    assert "run-three-cuts" not in response.text


def test_an_unknown_run_or_experiment_has_no_note(learner: TestClient) -> None:
    assert learner.get(NOTE, params={**AT_4, "shown": "nothing"}).status_code == 404
    assert learner.get(NOTE.replace("three-cuts", "nothing"), params=AT_4).status_code == 404
