"""A run that ended without a result stays in its lesson, with what happened, until another comes or it is forgotten."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.runs.store import State
from app.runs.stored import Failure
from tests.web.runs_made_up import EXPERIMENT, HTMX, end, finish, press, run_id_of, take
from tests.web.sites import LESSON

OF = {"of": EXPERIMENT}
RANK_2 = Failure("Rank 2 was killed by SIGKILL. Nothing is left running.", rank=2, exit="killed by SIGKILL", phase="measuring")
ENDINGS = [
    (State.FAILED, "Rank 2 stopped before the run was done."),
    (State.TIMED_OUT, "The time limit of 60 s ended this run."),
]


def failed(app: FastAPI, learner: TestClient, state: State = State.FAILED, P: int = 4) -> str:
    run_id = run_id_of(press(learner, P=P))
    end(app, take(app, run_id), state, RANK_2)
    return run_id


def place(client: TestClient) -> str:
    """The place of the run in the lesson's page, loaded anew."""
    html = client.get(LESSON).text
    html = html[html.index('id="run-three-cuts"'):]
    return html[:html.index("</section>\n<section")] if "</section>\n<section" in html else html


@pytest.mark.parametrize(("state", "heading"), ENDINGS)
def test_a_reload_still_tells_what_happened(app: FastAPI, learner: TestClient, state: State, heading: str) -> None:
    failed(app, learner, state)
    for _ in range(2):
        page = place(learner)
        assert heading in page
        assert "Rank 2 was killed by SIGKILL." in page
        assert "Run it for real" in page
        assert "Recorded on" in page
    assert heading not in place(TestClient(app)), "it is nobody else's"


def test_a_cancelled_run_stays_too_queued_or_running(app: FastAPI, learner: TestClient) -> None:
    queued = run_id_of(press(learner, P=4))
    learner.post(f"/runs/{queued}/cancel", params=OF, headers=HTMX)
    assert "This run was cancelled." in place(learner)
    running = run_id_of(press(learner, P=2))
    lease = take(app, running)
    learner.post(f"/runs/{running}/cancel", params=OF, headers=HTMX)
    assert "Stopping. Every process of this run is being ended." in place(learner)
    end(app, lease, State.CANCELLED, Failure("The run was cancelled while measuring.", exit="cancelled", phase="measuring"))
    assert "The run was cancelled while measuring." in place(learner)


def test_a_run_that_went_on_for_others_is_no_longer_shown(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    other = TestClient(app, follow_redirects=False)
    press(other, P=4)
    other.post(f"/runs/{run_id}/cancel", params=OF, headers=HTMX)
    assert run_id not in place(other)
    assert run_id in place(learner)


def test_the_last_result_stands_below_what_failed_after_it(app: FastAPI, learner: TestClient) -> None:
    good = run_id_of(press(learner, P=2))
    finish(app, take(app, good))
    bad = run_id_of(press(learner, P=4))
    end(app, take(app, bad), State.FAILED, RANK_2)
    polled = learner.get(f"/runs/{bad}/status", params=OF, headers=HTMX).text
    for html in (polled, place(learner)):
        assert html.index("Rank 2 stopped before the run was done.") < html.index("Measured on this server")
        assert f"/runs/{bad}/script" in html
        assert f"/runs/{good}/script" in html
        assert html.count("Run again") == 1
        assert "Recorded on" not in html
        assert "own fresh" not in html
    assert "Measured on this server" not in learner.get(f"/runs/{bad}", params=OF).text, "its own page is its own"


def test_another_run_takes_its_place(app: FastAPI, learner: TestClient) -> None:
    failed(app, learner)
    finish(app, take(app, run_id_of(press(learner, P=2))))
    assert "Rank 2 stopped" not in place(learner)
    assert "Measured on this server" in place(learner)


@pytest.mark.parametrize("htmx", [True, False])
def test_it_can_be_forgotten_and_its_page_stays(app: FastAPI, learner: TestClient, htmx: bool) -> None:
    run_id = failed(app, learner)
    assert f'action="/runs/{run_id}/forget?of=split-three-ways/three-cuts"' in place(learner)
    response = learner.post(f"/runs/{run_id}/forget", params=OF, headers=HTMX if htmx else {})
    if htmx:
        assert 'id="run-three-cuts" tabindex="-1" autofocus' in response.text, "the focus has a place to be"
        assert re.search(r'id="run-three-cuts-says"[^>]*>That run is out of this lesson.', response.text)
        assert "Rank 2 stopped" not in response.text
    else:
        assert (response.status_code, response.headers["location"].startswith(LESSON)) == (303, True)
    assert "Rank 2 stopped" not in place(learner)
    assert "Rank 2 stopped" in learner.get(f"/runs/{run_id}").text


def test_a_cancelled_run_can_be_forgotten(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    learner.post(f"/runs/{run_id}/cancel", params=OF, headers=HTMX)
    learner.post(f"/runs/{run_id}/forget", params=OF, headers=HTMX)
    assert "This run was cancelled." not in place(learner)


def test_nobody_forgets_for_another_nor_a_run_that_goes_on(app: FastAPI, learner: TestClient) -> None:
    run_id = failed(app, learner)
    TestClient(app).post(f"/runs/{run_id}/forget", params=OF, headers=HTMX)
    assert "Rank 2 stopped" in place(learner)
    alive = run_id_of(press(learner, P=2))
    learner.post(f"/runs/{alive}/forget", params=OF, headers=HTMX)
    assert "Cancel this run" in place(learner)
    assert learner.post("/runs/nothing/forget", params=OF).status_code == 404


@pytest.mark.parametrize("state", [State.FAILED, State.TIMED_OUT, State.CANCELLED])
def test_it_can_be_taken_away_and_run_elsewhere(app: FastAPI, learner: TestClient, state: State) -> None:
    run_id = failed(app, learner, state)
    for html in (place(learner), learner.get(f"/runs/{run_id}", params=OF).text):
        assert f"/runs/{run_id}/script" in html
        assert f"/runs/{run_id}/notebook" in html
        assert ("torchrun" in html) is (state is not State.CANCELLED)
    script = learner.get(f"/runs/{run_id}/script").text
    compile(script, "run.py", "exec")
    assert "data_parallel" in script


def test_the_steps_say_how_long_it_waited_and_where_it_stopped(app: FastAPI, learner: TestClient) -> None:
    failed(app, learner)
    steps = dict(re.findall(r"<b>(Queue|Measure)</b>\s*<span class=\"num\">([^<]*)</span>", place(learner)))
    assert re.fullmatch(r"[0-9.]+ s", steps["Queue"])
    assert re.fullmatch(r"stopped here after [0-9.]+ s", steps["Measure"])


def test_its_own_page_polls_to_the_end_without_a_button(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    lease = take(app, run_id)
    page = learner.get(f"/runs/{run_id}", params=OF).text
    poll = re.search(r'hx-get="(/runs/[^"]*status[^"]*)"', page)
    assert poll is not None
    finish(app, lease)
    last = learner.get(poll[1].replace("&amp;", "&"), headers=HTMX).text
    assert "192<small> B</small>" in last
    assert "Run it for real" not in last
    assert "Permalink" not in last
