"""The anonymous learner: a signed cookie, progress that comes back, an export, a deletion that leaves nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.runs.store import State
from app.web import learner
from tests.web.runs_made_up import finish, press, read, run_id_of, take
from tests.web.sites import LESSON, make_app

EIGHT = f"{LESSON}/checkpoints/eight-gpus"
VISIT = f"{LESSON}/visits"


def test_reading_the_map_or_ones_own_page_sets_no_cookie(client: TestClient) -> None:
    for address in ("/", "/me", "/healthz", "/static/app.css", "/nothing"):
        assert "set-cookie" not in client.get(address).headers


def test_a_lesson_sets_a_cookie_that_scripts_and_other_sites_do_not_get(client: TestClient) -> None:
    cookie = client.get(LESSON).headers["set-cookie"]
    assert cookie.startswith("learner=")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/" in cookie
    assert "Secure" not in cookie
    assert "set-cookie" not in client.get(LESSON).headers


def test_over_https_the_cookie_is_bound_to_this_host(web_app: FastAPI) -> None:
    cookie = TestClient(web_app, base_url="https://testserver").get(LESSON).headers["set-cookie"]
    assert cookie.startswith("__Host-learner=")
    assert "Secure" in cookie
    assert "Domain" not in cookie


def test_a_forged_cookie_is_nobody(web_app: FastAPI, client: TestClient) -> None:
    client.post(EIGHT, data={"answer": "56"})
    genuine = client.cookies["learner"]
    for forged in (genuine.rpartition(".")[0], genuine[:-1], "x" + genuine, "", ".", "é", genuine.replace(".", "..")):
        other = TestClient(web_app)
        headers = {"cookie": b"learner=" + forged.encode()}
        assert other.get("/me/export", headers=headers).json()["attempts"] == [], forged


def test_a_secret_of_another_installation_signs_nothing_here(tmp_path: Path, client: TestClient) -> None:
    client.post(EIGHT, data={"answer": "56"})
    elsewhere = TestClient(make_app(tmp_path))
    assert elsewhere.get("/me/export", headers={"cookie": f"learner={client.cookies['learner']}"}).json()["learner"] is None


def test_progress_is_on_the_map_in_the_rail_and_on_ones_own_page(client: TestClient) -> None:
    client.get(LESSON)
    assert "not begun" in client.get("/").text
    assert client.post(VISIT, data={"section": "hook"}).status_code == 303
    client.post(EIGHT, data={"answer": "64"})
    client.post(EIGHT, data={"answer": "56"})
    overview = client.get("/").text
    assert "1 of 7 sections, 1 of 5 right" in overview
    assert "Continue with lesson 1" in overview
    page = client.get(LESSON).text
    assert '<li class="done"><a id="rail-hook"' in page
    assert '<li><a id="rail-intuition" href="#intuition" aria-current="step">' in page
    assert 'data-l="Tries">2<' in client.get("/me").text


def test_a_lesson_is_done_when_all_sections_are_reached_and_all_questions_right(web_app: FastAPI, client: TestClient) -> None:
    lesson = web_app.state.site.course.lesson("split-three-ways")
    client.get(LESSON)
    for section in ("hook", "intuition", "formalize", "play", "worked-example", "checkpoint", "summary"):
        client.post(VISIT, data={"section": section})
    assert "6 of 7 sections" in client.get("/").text
    for question in lesson.questions:
        answer = question.option(question.answer, question.givens[0]).value
        response = client.post(f"{LESSON}/checkpoints/{question.id}", data={"answer": answer}, headers={"HX-Request": "true"})
        assert ", yes." in response.text
    assert "done, 5 of 5 right" in client.get("/").text


def test_reaching_a_section_sends_the_rail_back_to_htmx(client: TestClient) -> None:
    client.get(LESSON)
    response = client.post(VISIT, data={"section": "hook"}, headers={"HX-Request": "true"})
    assert response.text.startswith('<nav class="rail" id="rail"')
    assert 'class="done"' in response.text


def test_a_section_that_is_not_there_is_not_found(client: TestClient) -> None:
    assert client.post(VISIT, data={"section": "nothing"}).status_code == 404


def test_the_export_is_a_file_that_no_cache_keeps(client: TestClient) -> None:
    client.post(EIGHT, data={"answer": "56"})
    response = client.get("/me/export")
    assert response.headers["content-disposition"] == 'attachment; filename="world-size-progress.json"'
    assert response.headers["cache-control"] == "no-store"
    assert response.json()["attempts"][0]["answer"] == "56"
    assert client.get("/me").headers["cache-control"] == "no-store"


def test_a_guess_alone_is_something_kept_that_can_be_taken_away_and_deleted(client: TestClient) -> None:
    client.post(f"{LESSON}/predictions/most-traffic", data={"answer": "data"})
    page = client.get("/me").text
    assert "Nothing is kept" not in page
    assert 'action="/me/delete"' in page
    client.post("/me/delete", data={"confirm": "yes"})
    assert "Nothing is kept about this browser." in client.get("/me").text


def test_runs_are_listed_with_their_addresses_and_taken_along(web_app: FastAPI, client: TestClient) -> None:
    ended = run_id_of(press(client, P=4))
    finish(web_app, take(web_app, ended))
    run_id = run_id_of(press(client, P=2, L=3))
    page = client.get("/me").text
    assert "Nothing is kept" not in page
    assert page.index(f'href="/runs/{run_id}"') < page.index(f'href="/runs/{ended}"')
    told = r">Three ways, four GPUs</a></th><td data-l=\"At\">P.=.4, L.=.2, [^<]+</td><td data-l=\"Outcome\">measured<"
    assert re.search(told, page)
    assert 'data-l="Outcome">waits for its turn<' in page
    exported = client.get("/me/export").json()["runs"]
    assert [(run["id"], run["state"], run["spec"]["P"]) for run in exported] == [(run_id, "queued", 2), (ended, "done", 4)]
    assert TestClient(web_app).get("/me/export").json()["runs"] == []


def test_runs_asked_for_without_a_cookie_are_those_of_ever_new_learners_of_one_address(tmp_path: Path) -> None:
    app = make_app(tmp_path, learner_quota=3)
    body = {"strategy": "data_parallel", "P": 2}
    assert TestClient(app).post("/api/runs", json=body).status_code == 202
    assert TestClient(app, follow_redirects=False).post("/runs", data=body).status_code == 303
    known = TestClient(app)
    assert known.post("/api/runs", json=body).status_code == 202
    another, one_more = TestClient(app), TestClient(app)
    for refused in (another.post("/api/runs", json={**body, "L": 3}), one_more.post("/runs", data={**body, "L": 4})):
        assert refused.status_code == 429
        assert "keeps its cookie counts once" in refused.text
    assert known.post("/api/runs", json={**body, "L": 5}).status_code == 202
    app.state.site.database.close()


def test_runs_beyond_the_latest_are_counted(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "MOST_RUNS", 1)
    first, second = (run_id_of(press(client, P=P, H=6)) for P in (2, 3))
    page = client.get("/me").text
    assert second in page
    assert first not in page
    assert "These are the latest 1 of 2." in page


def test_deleting_cancels_a_run_that_waits_for_nobody_else_and_forgets_whose_it_was(
    web_app: FastAPI, client: TestClient
) -> None:
    run_id = run_id_of(press(client, P=2, H=7))
    assert client.post("/me/delete", data={"confirm": "yes"}).status_code == 303
    assert "Nothing is kept about this browser." in client.get("/me").text
    run = read(web_app, run_id)
    assert (run.state, run.asked_by) == (State.CANCELLED, None)
    assert "This run was cancelled." in client.get(f"/runs/{run_id}").text


def test_deleting_needs_the_tick(client: TestClient) -> None:
    client.post(EIGHT, data={"answer": "56"})
    response = client.post("/me/delete")
    assert response.status_code == 422
    assert "Nothing was deleted" in response.text
    assert client.get("/me/export").json()["attempts"]


def test_a_deletion_leaves_no_row_no_cookie_and_no_trace_in_the_file(sqlite_app: FastAPI, client: TestClient) -> None:
    client.post(EIGHT, data={"answer": "56"})
    learner = client.get("/me/export").json()["learner"]["id"]
    file: Path = sqlite_app.state.site.database.file
    assert learner.encode() in file.read_bytes()
    response = client.post("/me/delete", data={"confirm": "yes"})
    assert (response.status_code, response.headers["location"]) == (303, "/me")
    assert "learner" not in client.cookies
    assert "Nothing is kept about this browser." in client.get("/me").text
    assert learner.encode() not in file.read_bytes()


def test_progress_outlives_the_process(tmp_path: Path) -> None:
    first = TestClient(make_app(tmp_path))
    first.post(EIGHT, data={"answer": "56"}, follow_redirects=False)
    second = TestClient(make_app(tmp_path), cookies=first.cookies)
    assert "1 of 5 right" in second.get("/").text
