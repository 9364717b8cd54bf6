"""The lesson on data parallelism: sound drawings at all values, real runs, and a reader with keyboard or without a script."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Page, expect

from app.course import figure_fields
from app.course.load import load_course
from app.figures import FIGURES
from app.figures.inputs import Control, Field
from app.web.run_forms import find_place, lesson_address, wanted
from app.web.run_words import setting
from tests.course.conftest import ROOT
from tests.web.browsing import axe_findings, guess, is_no_wider_than_its_window, press

SLUG = "data-parallel"
LESSON = f"/lessons/{SLUG}"
NAMES = ("replicas", "accumulation", "buckets", "overlap", "global_batch")
DRAWING = re.compile(r"<svg.*?</svg>", re.DOTALL)


@pytest.fixture
def client(lesson_app: FastAPI) -> TestClient:
    return TestClient(lesson_app)


def asked(control: Control) -> st.SearchStrategy[str]:
    if isinstance(control, Field):
        return st.integers(control.minimum, control.maximum).map(str)
    return st.sampled_from([option.value for option in control.options])


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(data=st.data())
def test_every_drawing_is_well_formed_named_and_free_of_style_attributes(
    client: TestClient, name: str, data: st.DataObject
) -> None:
    query = {control.name: data.draw(asked(control)) for control in FIGURES[name].fields}
    response = client.get(f"/figures/{name}", params=query)
    assert response.status_code == 200
    assert "style=" not in response.text
    drawings = [ET.fromstring(drawing) for drawing in DRAWING.findall(response.text)]
    charts = [drawing for drawing in drawings if drawing.get("role") == "img"]
    assert len(charts) in (2, 4)
    for chart in charts:
        title = chart.find("title")
        assert title is not None
        assert chart.get("aria-labelledby") == title.get("id")
        assert title.text
    assert all(drawing.get("aria-hidden") == "true" for drawing in drawings if drawing not in charts)
    ids = re.findall(r' id="([^"]+)"', response.text)
    assert len(ids) == len(set(ids))


def test_all_eleven_recorded_measurements_are_equal_to_their_formula(client: TestClient) -> None:
    page = client.get(LESSON).text
    assert page.count('class="verdict"') == 11
    assert page.count('<td data-l="Verdict">equal</td>') == 11
    assert "op differs" not in page
    for title in ("In one piece", "By parameter", "In buckets", "DDP with no_sync", "DDP without no_sync", "By hand in bf16"):
        assert f"{title}, measured" in page


def test_a_sync_in_each_of_four_micro_steps_was_measured_at_four_times_the_bytes(client: TestClient) -> None:
    page = client.get(LESSON).text
    once, always = (page[page.index(f"DDP {how} no_sync, measured"):][:1500] for how in ("with", "without"))
    assert '<b>192<small> B</small></b><span>measured on the sockets' in once
    assert '<b>768<small> B</small></b><span>measured on the sockets' in always


@pytest.mark.parametrize(("question", "answer", "mistake"), [
    ("summed-on-more", "96", "DDP does one thing more after it has added up"),
    ("summed-on-more", "384", "No token is counted twice"),
    ("summed-on-more", "6", "That is the gradient of a mean over tokens"),
    ("no-sync", "224", "That is the price without"),
    ("no-sync", "14", "its gradient isn't a part of the gradient"),
    ("global-batch", "3456", "You gave each of the 96 GPUs sequences of its own"),
    ("global-batch", "1728", "Pipeline stages share their sequences as well"),
    ("short-and-long", "12", "That is the mean of the two means"),
    ("next-bucket", "41,943,040", "you would have to cut a parameter in two"),
    ("what-it-buys", "Each micro-batch needs less memory", "watch their height"),
    ("which-key", "contiguous_gradients", "That one is about memory"),
])
def test_each_misconception_has_an_answer_of_its_own(client: TestClient, question: str, answer: str, mistake: str) -> None:
    form = {"answer": answer, "variant": "0", "submission": f"{question}-{answer}"[:40]}
    said = client.post(f"{LESSON}/checkpoints/{question}", data=form, headers={"hx-request": "true"}).text
    assert mistake in re.sub(r"<[^>]+>", "", said).replace("&#39;", "'").replace("’", "'")


@pytest.mark.parametrize(("question", "answer"), [
    ("summed-on-more", "24"), ("no-sync", "56"), ("global-batch", "576 sequences"), ("short-and-long", "3"),
    ("next-bucket", "41,973,760"), ("which-key", "overlap_comm"),
    ("what-it-buys", "A batch that is larger by that factor, at the same peak of activations"),
])
def test_the_right_answers_are_accepted(client: TestClient, question: str, answer: str) -> None:
    form = {"answer": answer, "variant": "0", "submission": f"right-{question}"}
    assert ", yes." in client.post(f"{LESSON}/checkpoints/{question}", data=form, headers={"hx-request": "true"}).text


def test_a_run_takes_micro_steps_and_gpus_of_the_figure() -> None:
    place = find_place(load_course([ROOT / "lessons"], figure_fields()), "data-parallel/accumulated")
    run = wanted(place, [("accumulation.A", "8"), ("accumulation.P", "2"), ("accumulation.R", "3")], 8)
    assert run.P == 2
    assert [one.options["accumulation"] for one in run.experiments] == [8] * 4
    assert place.is_at(run)
    assert setting(run).replace("\N{NO-BREAK SPACE}", " ").endswith("A = 8")
    assert "accumulation.A=8&accumulation.P=2" in lesson_address(place, run)


def test_the_course_s_own_loop_waits_behind_its_name(client: TestClient) -> None:
    page = client.get(LESSON).text
    folded = page[page.index('<details class="data wide">'):]
    assert "DDP.synced_or_not</b> as it runs" in folded[:folded.index("</summary>")]
    assert "no_sync" in folded[:folded.index("</details>")]


# In a browser.


@pytest.mark.browser
def test_more_micro_steps_by_keyboard_raise_only_the_second_number(lesson: Page) -> None:
    expect(lesson.locator("#accumulation .n")).to_have_text(["48", "192"])
    lesson.locator("#accumulation-A-slider").focus()
    press(lesson, "ArrowRight", 12)
    expect(lesson.locator("#accumulation .n")).to_have_text(["48", "768"])
    expect(lesson.locator("#accumulation-A")).to_have_value("16")
    expect(lesson.locator("#accumulation-status")).to_contain_text("16 micro-steps on 4 GPUs")


@pytest.mark.browser
def test_another_limit_shows_the_other_sizes_of_the_report(lesson: Page) -> None:
    rows = lesson.locator("#buckets .buckets td:last-child")
    expect(rows).to_have_text(["2,052,000 bytes", "28,852,224 bytes", "15,853,824 bytes"])
    lesson.locator("#buckets-next").fill("35")
    expect(rows).to_have_text(["2,052,000 bytes", "38,297,600 bytes", "6,408,448 bytes"])
    expect(lesson.locator("#buckets .after")).to_contain_text("issue 48880")


@pytest.mark.browser
def test_the_log_is_chosen_with_arrow_keys(lesson: Page) -> None:
    finding = lesson.locator("#overlap .finding strong")
    expect(finding).to_contain_text("of it during backward")
    lesson.locator("#overlap").get_by_role("radio", name="DDP, four buckets").focus()
    press(lesson, "ArrowRight", 1)
    expect(finding).to_have_text("none of it during backward")


@pytest.mark.browser
def test_guesses_meet_their_reminders(lesson: Page) -> None:
    for prediction, label, reminder in (("forgotten-no-sync", "As much as ever", "You guessed one all-reduce."),
                                        ("summed-loss", "Half of it", "You guessed 30")):
        guess(lesson, prediction, label)
        expect(lesson.locator(f"#recall-{prediction}")).to_contain_text(reminder)


@pytest.mark.browser
def test_everything_is_there_without_a_script(without_script: Page, lesson_url: str) -> None:
    page = without_script
    page.goto(f"{lesson_url}?accumulation.A=16&global_batch.t=1&global_batch.p=1&overlap.run=one&buckets.next=35")
    expect(page.locator("#accumulation .n")).to_have_text(["48", "768"])
    expect(page.locator("#global_batch .finding strong")).to_have_text("2,048 sequences")
    expect(page.locator("#overlap .finding strong")).to_have_text("none of it during backward")
    page.locator("#accumulation-A").fill("2")
    page.locator("#accumulation").get_by_role("button", name="Show these values").click()
    expect(page.locator("#accumulation .n")).to_have_text(["48", "96"])
    expect(page.locator("#buckets-next")).to_have_value("35")


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (900, "light"), (1440, "light")])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_page(page: Page, lesson_url: str, width: int, theme: str) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    page.goto(lesson_url)
    assert axe_findings(page) == []
    assert is_no_wider_than_its_window(page)
