"""Running for real, from the page: every state a run can be in, as the learner who waits for it sees it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import update

from app.course.model import Experiment, Lesson
from app.runs import queue
from app.runs.store import State
from app.runs.stored import Failure, Progress
from app.tables import runs, workers
from app.web.run_forms import Place, at_values, left_out_of, lesson_address
from app.web.run_results import headline
from app.web.run_words import page_lede, setting
from kernels import spec
from tests.web.runs_made_up import (
    EXPERIMENT,
    HTMX,
    database_of,
    end,
    finish,
    press,
    read,
    ring,
    run_id_of,
    take,
    tell,
)
from tests.web.sites import LESSON, make_app

STATUS = {"of": EXPERIMENT}
LESSON_SHAPE = Lesson("split-three-ways", "", "", (), (), {}, (), (), (), (), (), (), frozenset())


def status(client: TestClient, run_id: str, said: str = "") -> str:
    response = client.get(f"/runs/{run_id}/status", params={**STATUS, "said": said}, headers=HTMX)
    assert response.status_code == 200
    html: str = response.text
    return html


def sentence(html: str) -> str:
    found = re.search(r'<p class="says-it">(.*?)</p>', html)
    assert found is not None, html
    return found[1]


def test_before_any_run_the_recorded_one_is_shown_as_recorded(learner: TestClient) -> None:
    page = learner.get(LESSON).text
    assert "Run it for real" in page
    assert "nothing was measured on this server" in page
    assert "No worker has been started on this server yet." in page


def test_a_form_without_a_script_leads_to_the_run_s_page(app: FastAPI, learner: TestClient) -> None:
    response = press(learner, htmx=False, P=4)
    assert response.status_code == 303
    page = learner.get(response.headers["location"])
    assert '<noscript><meta http-equiv="refresh" content="1"></noscript>' in page.text
    assert "Cancel this run" in page.text
    run_id = run_id_of(response)
    finish(app, take(app, run_id))
    page = learner.get(response.headers["location"])
    assert 'http-equiv="refresh"' not in page.text
    assert "192<small> B</small>" in page.text


def test_pressing_asks_for_all_strategies_in_one_launch_at_the_live_values(app: FastAPI, learner: TestClient) -> None:
    """The page was rendered at P = 4 and its slider stands at 8: the live form wins."""
    form = {"experiment": EXPERIMENT, "P": "4", "L": "2", "volume.P": "8", "volume.L": "2", "volume.H": "8", "volume.T": "1",
            "what_moves.strategy": "data"}
    run_id = run_id_of(learner.post("/runs", data=form, headers=HTMX))
    run = read(app, run_id).spec
    assert (run.P, [one.strategy for one in run.experiments]) == (8, ["data_parallel", "tensor_parallel", "pipeline_gpipe"])
    assert {one.H for one in run.experiments} == {8}


def test_equal_batches_are_run_as_the_figure_shows_them(app: FastAPI, learner: TestClient) -> None:
    run = read(app, run_id_of(press(learner, live={"volume.P": "4", "volume.batch": "equal"}))).spec
    assert [(one.T, one.m) for one in run.experiments] == [(1, 1), (4, 1), (1, 4)]


def test_the_length_of_a_buffer_follows_its_figure_and_the_titles_stay() -> None:
    by_hand = spec.Experiment("ring_all_reduce", options={"implementation": "ring", "elements": 32})
    library = spec.Experiment("ring_all_reduce", options={"implementation": "library", "elements": 32})
    experiment = Experiment("ways", "Ways", "Counted.", "collectives", 4, (by_hand, library))
    size, (first, second) = at_values(experiment, {"P": 3, "s": "48"})
    assert (size, first.option("elements"), second.option("elements")) == (3, 48, 48)
    place = Place(LESSON_SHAPE, experiment)
    assert (place.taught(first), place.taught(second)) == (by_hand, library)
    run = spec.RunSpec(3, (first, second))
    assert place.is_at(run)
    assert left_out_of(place, run) == []
    assert lesson_address(place, run) == "/lessons/split-three-ways?collectives.P=3&collectives.s=48#experiment-ways"
    assert setting(run).replace("\N{NO-BREAK SPACE}", " ") == "P = 3, s = 48"


def test_a_strategy_that_cannot_run_is_left_out_with_the_reason_in_its_row(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=3))
    assert [one.strategy for one in read(app, run_id).spec.experiments] == ["data_parallel", "pipeline_gpipe"]
    finish(app, take(app, run_id))
    html = status(learner, run_id)
    assert "Left out: min(P, H) = 3 does not divide H = 4; with H = 4, P may be 1, 2 or 4, or more than 4." in html
    assert html.count('class="verdict"') == 2


def test_a_queued_run_tells_its_place_and_polls_less_often_the_further_back(app: FastAPI, learner: TestClient) -> None:
    first = run_id_of(press(learner, P=2))
    second = run_id_of(press(learner, P=4))
    take(app, run_id_of(press(learner, P=5, H=5)))  # shows a worker, and ends what was queued before
    third, fourth = run_id_of(press(learner, P=6, H=6)), run_id_of(press(learner, P=7, H=7))
    assert sentence(status(learner, third)) == "Next in the queue."
    assert sentence(status(learner, fourth)) == "Second in the queue."
    assert "load delay:200ms" in status(learner, third)
    assert "load delay:400ms" in status(learner, fourth)
    assert {read(app, one).state for one in (first, second)} == {State.CANCELLED}


def test_while_no_worker_is_there_the_learner_is_told_and_keeps_the_place(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    told = sentence(status(learner, run_id))
    assert told.startswith("No worker has been started on this server yet. Your run keeps its place")
    end(app, take(app, run_id), State.CANCELLED)
    gone = datetime.now(UTC) - timedelta(minutes=3)
    with database_of(app).writing() as session:
        session.execute(update(workers).values(seen_at=gone))
    run_id = run_id_of(press(learner, P=4))
    assert sentence(status(learner, run_id)).startswith("The worker of this server was seen last 3 minutes ago.")
    assert "The worker of this server was seen last 3 minutes ago. A run would wait" in TestClient(app).get(LESSON).text


def test_a_running_run_tells_what_happens_now(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    lease = take(app, run_id)
    html = status(learner, run_id)
    assert sentence(html) == "Four processes start and find each other on this machine."
    assert '<progress max="1" aria-label="Launch">' in html
    tell(app, lease, Progress("warming up", 3, 0, "data_parallel", "fp32"))
    html = status(learner, run_id)
    assert sentence(html).startswith("Data parallel, warming up in fp32")
    assert 'aria-label="Warm-up"' in html
    tell(app, lease, Progress("measuring", 3, 1, "tensor_parallel", "fp64", half=1, repetition=2, repetitions=3))
    html = status(learner, run_id)
    assert sentence(html) == "Tensor parallel, measuring in fp64: repetition 2 of 3."
    assert '<progress max="1" value="0.583" aria-label="Measure">' in html
    assert "strategy 2 of 3" in html


def test_what_happens_is_announced_once_a_change(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    lease = take(app, run_id)
    html = status(learner, run_id, said="place-1")
    assert 'hx-swap-oob="innerHTML">Four processes start' in html
    assert "hx-swap-oob" not in status(learner, run_id, said="launching")
    tell(app, lease, Progress("measuring", 3, 0, "data_parallel", "fp32", repetition=1, repetitions=3))
    told = status(learner, run_id, said="launching")
    assert "hx-swap-oob" in told
    assert "said=measuring-0" in told
    tell(app, lease, Progress("measuring", 3, 0, "data_parallel", "fp32", repetition=2, repetitions=3))
    assert "hx-swap-oob" not in status(learner, run_id, said="measuring-0")


def test_the_last_poll_brings_the_result_with_its_animation_and_no_trigger(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    finish(app, take(app, run_id))
    response = learner.get(f"/runs/{run_id}/status", params=STATUS, headers=HTMX)
    html = response.text
    assert (response.headers["hx-retarget"], response.headers["hx-reswap"]) == ("#run-three-cuts", "outerHTML")
    assert 'class="own fresh"' in html
    assert "load delay" not in html
    assert "All three send what was predicted for this backend, to the byte." in html
    assert "Measured. Data parallel: 768 B, equal." in html
    assert html.count('class="verdict"') == 3
    assert "torchrun --nproc-per-node 4" in html
    assert "0.4 s" in html
    assert "Recorded" not in html


def test_a_page_load_shows_the_own_result_without_animation(app: FastAPI, learner: TestClient) -> None:
    finish(app, take(app, run_id_of(press(learner, P=4))))
    page = learner.get(LESSON).text
    assert "Measured on this server just now." in page
    assert "own fresh" not in page
    assert "Recorded on" not in page
    assert "Recorded on" in TestClient(app).get(LESSON).text, "somebody else still sees the recorded run"


def test_a_reload_in_the_middle_goes_on_watching(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    take(app, run_id)
    page = learner.get(LESSON).text
    assert f'hx-get="/runs/{run_id}/status?' in page
    assert "Run it for real" not in page


def test_an_earlier_result_is_shown_at_once_with_its_age_and_can_be_run_again(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    finish(app, take(app, run_id))
    with database_of(app).writing() as session:
        session.execute(update(runs).values(ended_at=datetime.now(UTC) - timedelta(hours=2)))
    other = TestClient(app, follow_redirects=False)
    html = press(other, P=4).text
    assert "Measured on this server 2 hours ago, for somebody else who asked for the same." in html
    assert 'class="own fresh"' not in html
    again = other.post("/runs", data={"experiment": EXPERIMENT, "again": run_id}, headers=HTMX)
    assert run_id_of(again) != run_id
    assert "Cancel this run" in again.text


def test_an_identical_run_under_way_is_joined_and_cancelled_for_oneself_alone(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    other = TestClient(app, follow_redirects=False)
    joined = press(other, P=4)
    assert run_id_of(joined) == run_id
    assert "Another learner asked for exactly this run first." in joined.text
    left = other.post(f"/runs/{run_id}/cancel", params=STATUS, headers=HTMX).text
    assert "Others wait for the same run, so it goes on for them." in left
    assert "Run it for real" in left
    assert not read(app, run_id).cancel_requested


def test_a_queued_run_is_cancelled_at_once(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    html = learner.post(f"/runs/{run_id}/cancel", params=STATUS, headers=HTMX).text
    assert "This run was cancelled." in html
    assert "Run it for real" in html
    assert "Recorded on" in html
    assert "Recorded on" in learner.get(LESSON).text


def test_a_running_run_is_stopped_by_its_worker(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    lease = take(app, run_id)
    response = learner.post(f"/runs/{run_id}/cancel", params=STATUS)
    assert response.status_code == 303
    assert sentence(learner.get(response.headers["location"]).text) == "Stopping. Every process of this run is being ended."
    assert "Cancel this run" not in status(learner, run_id)
    end(app, lease, State.CANCELLED, Failure("The run was cancelled while measuring.", exit="cancelled", phase="measuring"))
    html = status(learner, run_id)
    assert "The run was cancelled while measuring." in html
    assert re.search(r'<li class="stop">\s*<b>Measure</b>\s*<span class="num">cancelled', html)


def test_nobody_cancels_the_run_of_another(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    other = TestClient(app)
    assert "Cancel this run" not in other.get(f"/runs/{run_id}").text
    assert other.post(f"/runs/{run_id}/cancel").status_code == 403
    assert read(app, run_id).state is State.QUEUED


def test_a_failed_run_says_which_rank_and_shows_the_end_of_its_log(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    why = Failure("Rank 2 was killed by SIGKILL while warming up. Nothing is left running.", rank=2, exit="killed by SIGKILL",
                  phase="warming up data_parallel", log_tail="Traceback <most recent>")
    end(app, take(app, run_id), State.FAILED, why)
    html = status(learner, run_id)
    assert "Rank 2 stopped before the run was done." in html
    assert "Nothing is left running." in html
    assert "Traceback &lt;most recent&gt;" in html
    assert re.search(r'<li class="stop">\s*<b>Warm-up</b>', html)
    assert "Run again" in html
    assert "Recorded on" in html


def test_a_run_out_of_time_names_its_limit(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    why = Failure("The run did not finish within 60 seconds.", exit="time limit", phase="measuring")
    end(app, take(app, run_id), State.TIMED_OUT, why)
    html = status(learner, run_id)
    assert "The time limit of 60 s ended this run." in html
    assert "out of time" in html


def test_a_measurement_that_differs_is_marked_and_explained(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    finish(app, take(app, run_id), payload_matrix=ring([192, 192, 192, 240]))
    html = status(learner, run_id)
    assert "<mark>Data parallel differs</mark>" in html
    assert 'class="op differs"' in html
    assert "rank 3 sent 240, not 192" in html


def test_readings_that_do_not_agree_give_no_verdict(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    finish(app, take(app, run_id), agreeing=1)
    html = status(learner, run_id)
    assert "<mark>Data parallel is without a verdict</mark>" in html
    assert "only 1 of 3 readings agreed, and all must" in html


def test_several_without_a_verdict_share_one_sentence() -> None:
    results = [{"verdict": verdict, "ideal_gap": {"bytes": 0}} for verdict in ("inconclusive", "differs", "inconclusive")]
    told = headline(results, ["Data parallel", "Tensor parallel", "DDP"])
    assert told.startswith("<mark>Tensor parallel differs; Data parallel and DDP are without a verdict</mark>: ")


def test_uneven_ranks_are_drawn_and_their_cause_is_named(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    finish(app, take(app, run_id))
    html = status(learner, run_id)
    assert "<b>Uneven segments.</b>" in html
    assert 'width="73.50%"' in html, "96 of 128 bytes, of a drawing of which 98 % is the longest bar"


def test_a_backend_that_departs_from_the_formula_is_marked_and_its_cause_named(app: FastAPI, learner: TestClient) -> None:
    """On eight GPUs a width of four leaves four of them idle: 96 elements in all, and not the formula's eight times 28."""
    run_id = run_id_of(press(learner, P=8))
    finish(app, take(app, run_id))
    html = status(learner, run_id)
    assert "<mark>Tensor parallel departs from the formula</mark>, because some GPUs hold nothing." in html
    assert "<b>Idle GPUs.</b>" in html
    assert "512 B away from the formula" in html


def test_names_with_commas_are_kept_apart_in_the_address_s_first_sentence() -> None:
    run = spec.RunSpec(4, (spec.Experiment("ddp"),))
    assert page_lede(run, ["DDP, once", "DDP, every micro step"]).startswith("DDP, once; DDP, every micro step, at P")


def test_a_value_over_the_cap_is_refused_beside_the_button(learner: TestClient) -> None:
    response = press(learner, P=64)
    assert response.status_code == 422
    assert response.headers["hx-retarget"] == "#run-three-cuts-refusal"
    assert "Nothing was started. Put P at 8 or less first." in response.text


def test_a_value_no_figure_takes_is_refused_beside_the_button(learner: TestClient) -> None:
    response = press(learner, live={"volume.P": "many"})
    assert response.status_code == 422
    assert "P must be a whole number from 1 to 64, not many." in response.text


def test_a_refusal_without_a_script_is_the_lesson_with_the_message_in_it(learner: TestClient) -> None:
    form = {"experiment": EXPERIMENT, "P": "64"}
    response = learner.post("/runs?volume.P=64", data=form)
    assert response.status_code == 422
    assert "Nothing was started. Put P at 8 or less first." in response.text
    assert "<h1>Split three ways</h1>" in response.text
    assert 'name="P" value="64"' in response.text


def test_a_page_beyond_the_cap_says_so_before_anybody_presses(app: FastAPI, learner: TestClient) -> None:
    take(app, run_id_of(press(TestClient(app), P=4)))
    page = learner.get(f"{LESSON}?volume.P=64").text
    assert "This server runs at most 8 processes, and the figure has 64. Put P at 8 or less." in page


def test_a_used_up_quota_is_said_with_when_to_come_again(tmp_path: Path) -> None:
    app = make_app(tmp_path, run_quota=1)
    client = TestClient(app)
    press(client, P=4)
    response = press(client, P=2)
    assert response.status_code == 429
    assert int(response.headers["retry-after"]) > 0
    assert "You have started 1 run in the last hour, and 1 is the most here." in response.text
    plain = press(client, htmx=False, P=2)
    assert (plain.status_code, "Split three ways" in plain.text) == (429, True)
    app.state.site.database.close()


def test_a_full_queue_is_said(app: FastAPI, learner: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MOST_QUEUED", 0)
    response = press(learner, P=4)
    assert response.status_code == 429
    assert "Nothing was stored; try again in a few minutes." in response.text


def test_where_runs_are_off_pages_say_so_and_nothing_starts(tmp_path: Path) -> None:
    app = make_app(tmp_path, runs=False)
    client = TestClient(app)
    page = client.get(LESSON).text
    assert "Runs are off on this server" in page
    assert "worldsize measure data_parallel -P 4" in page
    assert "Run it for real" not in page
    response = press(client, P=4)
    assert response.status_code == 422
    assert "real runs are switched off on this installation" in response.text
    app.state.site.database.close()


def test_a_strategy_alone_can_be_asked_for(app: FastAPI, learner: TestClient) -> None:
    response = learner.post("/runs", data={"strategy": "data_parallel", "P": "2", "sync": "bucketed", "bucket_bytes": "64"})
    assert response.status_code == 303
    run = read(app, run_id_of(response))
    assert dict(run.spec.experiments[0].options) == {"sync": "bucketed", "bucket_bytes": 64}
    finish(app, take(app, run.id))
    page = learner.get(response.headers["location"]).text
    assert "<h1>Data parallel on two GPUs</h1>" in page
    assert "Back to Split" not in page


@pytest.mark.parametrize(("form", "words"), [
    ({}, "strategy"),
    ({"strategy": "telepathy"}, "unknown; choose one of"),
    ({"strategy": "data_parallel", "P": "four"}, "must be a whole number"),
    ({"strategy": "data_parallel", "P": "-1"}, "-1: must be a whole number from 1 to 8"),
    ({"strategy": "data_parallel", "Q": "4"}, "neither a number of a run nor an option"),
    ({"strategy": "tensor_parallel", "P": "3"}, "does not divide H"),
    ({"strategy": "data_parallel", "m": "2"}, "has no micro-batches"),
])
def test_a_form_that_cannot_run_is_a_page_in_words(learner: TestClient, form: dict[str, str], words: str) -> None:
    response = learner.post("/runs", data=form)
    assert response.status_code == 422
    assert words in response.text


@pytest.mark.parametrize("address", ["/runs/nothing", "/runs/nothing/status", "/runs/nothing/script", "/runs/nothing/notebook"])
def test_an_unknown_run_is_not_found(learner: TestClient, address: str) -> None:
    assert learner.get(address).status_code == 404


def test_an_unknown_experiment_is_not_found(learner: TestClient) -> None:
    for key in ("nothing", "split-three-ways/nothing", "nothing/three-cuts", "/"):
        assert learner.post("/runs", data={"experiment": key}).status_code == 404


def test_a_run_s_page_holds_all_of_it_for_whoever_has_the_address(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    finish(app, take(app, run_id))
    response = TestClient(app).get(f"/runs/{run_id}", params=STATUS)
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-robots-tag"] == "noindex"
    page = response.text
    for words in ('<meta name="robots" content="noindex">', "2.13.0", "loopback TCP", "launch host",
                  "1 January 2026, 12:00 UTC", f'href="/api/runs/{run_id}"', f"/runs/{run_id}/script",
                  f"/runs/{run_id}/notebook", "torchrun",
                  "Back to Split three ways", "Three ways, four GPUs"):
        assert words in page, words
    assert "own fresh" not in page


def test_script_and_notebook_are_files_that_hold_the_spec(app: FastAPI, learner: TestClient) -> None:
    run_id = run_id_of(press(learner, P=4))
    finish(app, take(app, run_id))
    script = learner.get(f"/runs/{run_id}/script")
    compile(script.text, "run.py", "exec")
    assert script.headers["content-disposition"].endswith('.py"')
    notebook = learner.get(f"/runs/{run_id}/notebook")
    assert json.loads(notebook.text)["nbformat"] == 4
    assert notebook.headers["content-disposition"].endswith('.ipynb"')


def test_a_learner_without_a_cookie_gets_one_with_the_first_run(learner: TestClient) -> None:
    assert "learner" in press(learner, P=4).cookies
