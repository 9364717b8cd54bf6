"""Questions: graded on the server, every try kept once, feedback only after an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.db import Database
from app.tables import metadata
from tests.web.sites import LESSON, make_app

EIGHT = f"{LESSON}/checkpoints/eight-gpus"
TOKENS = f"{LESSON}/checkpoints/break-even"
HTMX = {"HX-Request": "true"}


def exported(client: TestClient) -> list[dict[str, Any]]:
    attempts: list[dict[str, Any]] = client.get("/me/export").json()["attempts"]
    return attempts


def hidden(html: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', html)
    assert found is not None
    return found[1]


def prompt(html: str) -> str:
    return html[html.index("<legend>"):html.index("</legend>")]


def question_html(client: TestClient, query: str = "") -> str:
    html = client.get(f"{LESSON}?{query}").text
    return html[html.index('id="question-eight-gpus"'):html.index('id="question-doubled-width"')]


def test_eight_gpus_send_56_each(client: TestClient) -> None:
    response = client.post(EIGHT, data={"answer": "56"}, headers=HTMX)
    assert response.status_code == 200
    assert "56, yes." in response.text
    assert response.text.count("disabled>") == 5


def test_a_wrong_answer_is_told_which_mistake_it_is_and_not_the_answer(client: TestClient) -> None:
    response = client.post(EIGHT, data={"answer": "64"}, headers=HTMX)
    assert response.status_code == 200
    assert "Not 64." in response.text
    assert 'class="right"' not in response.text
    assert "yes" not in response.text
    assert 'class="wrong"' in response.text


def test_without_htmx_the_answer_leads_back_to_the_question_where_its_feedback_stands(client: TestClient) -> None:
    client.get(LESSON)
    response = client.post(f"{EIGHT}?volume.P=8", data={"answer": "64"})
    assert response.status_code == 303
    assert response.headers["location"] == f"{LESSON}?volume.P=8#question-eight-gpus"
    assert "Not 64." in question_html(client)


@pytest.mark.parametrize("nonsense", ["pear", "", "   ", "1,2", "56 GB", "9" * 90, "\x00", "💥", "--5"])
def test_nonsense_gets_help_costs_no_try_and_is_not_kept(client: TestClient, nonsense: str) -> None:
    client.get(LESSON)
    response = client.post(TOKENS, data={"answer": nonsense}, headers=HTMX)
    assert response.status_code == 422
    assert "Not counted as a try." in response.text
    assert exported(client) == []


def test_without_htmx_nonsense_comes_back_on_the_whole_page_with_what_was_typed(client: TestClient) -> None:
    response = client.post(TOKENS, data={"answer": "pear"})
    assert response.status_code == 422
    assert "<h1>Split three ways</h1>" in response.text
    assert 'value="pear"' in response.text


@pytest.mark.parametrize("form", [{"variant": "-1"}, {"variant": "x"}, {"variant": "10000"}, {"answer": "5" * 300},
                                  {"submission": "s" * 65}, {"more": "1"}])
def test_a_form_that_no_page_of_ours_sends_is_refused(client: TestClient, form: dict[str, str]) -> None:
    assert client.post(EIGHT, data={"answer": "56", **form}).status_code == 422
    assert client.post(EIGHT, data={"answer": "56", **form}, headers=HTMX).status_code == 422


@pytest.mark.parametrize("address", [f"{LESSON}/checkpoints/nothing", "/lessons/nothing/checkpoints/eight-gpus",
                                     "/lessons/ring-all-reduce/checkpoints/eight-gpus"])
def test_a_question_that_is_not_there_is_not_found(client: TestClient, address: str) -> None:
    assert client.post(address, data={"answer": "56"}).status_code == 404


def test_every_try_is_kept_in_order(client: TestClient) -> None:
    client.get(LESSON)
    for answer in ("48", "64", "56"):
        client.post(EIGHT, data={"answer": answer})
    kept = [(attempt["number"], attempt["answer"], attempt["outcome"]) for attempt in exported(client)]
    assert kept == [(1, "48", "wrong"), (2, "64", "wrong"), (3, "56", "right")]


def test_the_same_form_sent_twenty_times_at_once_is_one_try_with_one_answer(client: TestClient) -> None:
    form = {"answer": "64", "variant": "0", "submission": hidden(question_html(client), "submission")}
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: client.post(EIGHT, data=form, headers=HTMX), range(20)))
    assert {answer.status_code for answer in answers} == {200}
    assert all("Not 64." in answer.text and "1 try so far" in answer.text for answer in answers)
    assert len(exported(client)) == 1


def test_another_answer_in_a_form_restored_by_back_is_another_try(client: TestClient) -> None:
    submission = hidden(question_html(client), "submission")
    for answer in ("64", "56"):
        client.post(EIGHT, data={"answer": answer, "submission": submission})
    assert [attempt["outcome"] for attempt in exported(client)] == ["wrong", "right"]


def test_two_tabs_of_a_new_learner_lose_nothing(client: TestClient) -> None:
    client.get(LESSON)  # both tabs have the page, and so the cookie
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda answer: client.post(EIGHT, data={"answer": answer}), ["48", "64"]))
    assert {attempt["answer"] for attempt in exported(client)} == {"48", "64"}


def test_another_try_brings_other_numbers_and_the_first_answer_stays(client: TestClient) -> None:
    client.get(LESSON)
    solved = client.post(EIGHT, data={"answer": "56"}, headers=HTMX).text
    assert "try.eight-gpus=1" in solved
    other = client.get(f"{EIGHT}?try.eight-gpus=1", headers=HTMX).text
    assert hidden(other, "variant") == "1"
    assert prompt(other) != prompt(solved)
    assert "disabled" not in other.replace("hx-disabled-elt", "")
    client.post(EIGHT, data={"answer": "64", "variant": "1"}, headers=HTMX)
    assert "56, yes." in question_html(client, "try.eight-gpus=0")


def test_the_question_alone_is_for_htmx_and_others_are_led_to_the_lesson(client: TestClient) -> None:
    response = client.get(f"{EIGHT}?try.eight-gpus=1")
    assert response.headers["location"] == f"{LESSON}?try.eight-gpus=1#question-eight-gpus"
    assert response.headers["vary"] == "HX-Request"


@pytest.mark.parametrize("number", ["-1", "x", "", "1.5", "99999", "٣"])
def test_a_try_that_is_no_number_is_refused(client: TestClient, number: str) -> None:
    assert client.get(LESSON, params={"try.eight-gpus": number}).status_code == 422
    assert client.get(EIGHT, params={"try.eight-gpus": number}, headers=HTMX).status_code == 422


def test_no_feedback_and_no_mark_is_in_any_page_before_the_answer(web_app: FastAPI, client: TestClient) -> None:
    """Every feedback of every question, as the course would say it at this learner's numbers, is nowhere to be read."""
    lesson = web_app.state.site.course.lesson("split-three-ways")
    pages = [client.get(address, headers=headers).text for address, headers in (
        (LESSON, {}), (f"{LESSON}?try.eight-gpus=1", {}), ("/", {}), ("/me", {}), (f"{EIGHT}?try.eight-gpus=0", HTMX))]
    for page in pages:
        assert 'class="right"' not in page
        assert 'class="wrong"' not in page
        for question in lesson.questions:
            for choice in (question.answer, *question.wrong):
                feedback = choice.feedback.html(question.givens[0])
                sentence = re.sub("<[^>]+>", " ", feedback).strip()[:50]
                assert sentence not in re.sub("<[^>]+>", " ", page)


def test_the_answer_decides_nothing_in_a_page_that_was_not_answered(client: TestClient) -> None:
    """All options of a question look alike but for what stands on them."""
    html = question_html(client)
    labels = re.findall(r"<label[^>]*>.*?</label>", html)
    shapes = {re.sub(r'(id="[^"]*"|value="[^"]*"|>[^<]*</label>)', "", label) for label in labels}
    assert len(labels) == 5
    assert len(shapes) == 1


def test_answers_do_not_reach_another_learner(web_app: FastAPI, client: TestClient) -> None:
    client.post(EIGHT, data={"answer": "56"})
    assert "56, yes." not in TestClient(web_app).get(LESSON).text


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[FastAPI]:
    """A site where a learner may send two answers in an hour, and one address may begin three learners."""
    app = make_app(tmp_path, answer_quota=2, learner_quota=3)
    yield app
    app.state.site.database.close()


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_an_answer_too_many_stays_in_its_field_beside_when_it_can_be_sent_again(
        strict: FastAPI, headers: dict[str, str]) -> None:
    client = TestClient(strict, follow_redirects=False)
    client.get(LESSON)
    for number in ("1", "2"):
        client.post(TOKENS, data={"answer": number})
    response = client.post(f"{TOKENS}?volume.P=8", data={"answer": "71"}, headers=headers)
    assert response.status_code == 429
    assert 3590 <= int(response.headers["retry-after"]) <= 3600
    place = response.text[response.text.index('action="/lessons/split-three-ways/checkpoints/break-even?volume.P=8"'):]
    place = place[:place.index("</form>")]
    assert 'value="71"' in place
    assert "You have sent 2 answers in the last hour" in place
    assert "cost no try. You can go on in 60 minutes." in place
    assert "aria-invalid" not in place
    assert "2 tries so far" in place
    assert ("<h1>" in response.text) == (not headers)
    assert len(exported(client)) == 2


def test_a_choice_too_many_stays_chosen_and_is_not_marked(strict: FastAPI) -> None:
    client = TestClient(strict, follow_redirects=False)
    client.get(LESSON)
    for answer in ("48", "64"):
        client.post(EIGHT, data={"answer": answer})
    text = client.post(EIGHT, data={"answer": "56"}, headers=HTMX).text
    assert re.search(r'value="56" checked', text)
    assert 'class="right"' not in text
    assert 'class="wrong"' not in text
    assert "yes" not in text


def test_a_client_that_forgets_its_cookie_begins_so_many_learners_and_no_more(strict: FastAPI) -> None:
    def forgetful() -> int:
        return TestClient(strict, follow_redirects=False).post(EIGHT, data={"answer": "64"}, headers=HTMX).status_code

    remembers = TestClient(strict, follow_redirects=False)
    remembers.get(LESSON)
    assert remembers.post(EIGHT, data={"answer": "64"}).status_code == 303
    assert [forgetful() for _ in range(4)] == [200, 200, 429, 429]
    guess = TestClient(strict).post(f"{LESSON}/predictions/most-traffic", data={"answer": "tensor"})
    assert guess.status_code == 429
    assert "Your network address has brought 3 new learners in this hour" in guess.text
    assert re.search(r'value="tensor"[^>]* checked', guess.text)
    assert TestClient(strict).post(f"{LESSON}/visits", data={"section": "play"}).status_code == 429
    run = TestClient(strict).post("/api/runs", json={"strategy": "data_parallel"})
    assert (run.status_code, "retry-after" in run.headers) == (429, True)
    assert remembers.post(EIGHT, data={"answer": "56"}).status_code == 303


def test_two_addresses_are_counted_apart_and_one_ipv6_network_is_one(strict: FastAPI) -> None:
    def begins(address: str) -> int:
        client = TestClient(strict, client=(address, 50000))
        return client.post(EIGHT, data={"answer": "64"}, headers=HTMX).status_code

    assert [begins(f"2001:db8::{number}") for number in range(4)] == [200, 200, 200, 429]
    assert [begins("2001:db8:0:1::1"), begins("192.0.2.1"), begins("::ffff:192.0.2.1")] == [200, 200, 200]


def test_no_address_is_in_the_database(strict: FastAPI) -> None:
    TestClient(strict, client=("192.0.2.77", 50000)).post(EIGHT, data={"answer": "64"})
    stored = everything_in(strict.state.site.database)
    assert "eight-gpus" in stored
    assert "192.0.2.77" not in stored


def everything_in(database: Database) -> str:
    """SQLite's files as they lie on the disk; of PostgreSQL, every row."""
    if database.file is None:
        with database.reading() as session:
            return str([session.execute(select(table)).all() for table in metadata.tables.values()])
    database.close()
    files = database.file.parent.glob(f"{database.file.name}*")
    return b"".join(path.read_bytes() for path in files).decode("latin-1")
