"""The lesson on tensor parallelism in a real browser: figures by keyboard and without a script, questions, both themes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Page, expect

from app.figures import FIGURES
from app.figures.inputs import Choice, Control
from tests.web.browsing import answer, axe_findings, guess, is_no_wider_than_its_window, press

SLUG = "tensor-parallel"
WIDTHS = (390, 900, 1440)
DRAWING = re.compile(r"<svg.*?</svg>", re.DOTALL)
OWN_FIGURES = ("matrix_split", "tensor_or_data", "transformer_layer")


@pytest.mark.browser
def test_pairing_two_layers_leaves_one_sum_and_the_address_keeps_it(lesson: Page) -> None:
    figure = lesson.locator("#matrix_split")
    expect(figure.locator(".finding")).to_contain_text("2 × 6 = 12 elements")
    figure.get_by_role("radio", name="two layers as a pair").check()
    expect(figure.locator(".finding strong")).to_have_text("6 elements")
    figure.get_by_role("radio", name="backward").check()
    expect(figure.locator(".finding")).to_contain_text("Only dx is added up")
    expect(lesson).to_have_url(re.compile(r"matrix_split\.split=pair.*matrix_split\.direction=backward"))
    lesson.reload()
    expect(lesson.locator("#matrix_split .finding")).to_contain_text("Only dx is added up")


@pytest.mark.browser
def test_tokens_are_raised_by_keyboard_until_tensor_draws_level(lesson: Page) -> None:
    lesson.locator("#tensor_or_data-T-slider").focus()
    press(lesson, "ArrowRight")
    expect(lesson.locator("#tensor_or_data .finding strong")).to_have_text("exactly as much")
    press(lesson, "ArrowRight", 2)
    expect(lesson.locator("#tensor_or_data .finding")).to_contain_text("as many as H, pairs cost exactly as much")
    expect(lesson.locator("#tensor_or_data-T-slider")).to_be_focused()


@pytest.mark.browser
def test_three_gpus_are_refused_in_words(lesson: Page) -> None:
    lesson.locator("#matrix_split-P-slider").focus()
    press(lesson, "ArrowLeft")
    expect(lesson.locator("#matrix_split .finding")).to_contain_text("3 GPUs cannot share 4 rows equally")
    expect(lesson.locator("#matrix_split-status")).to_contain_text("1 is left over")


@pytest.mark.browser
def test_own_tokens_leave_the_layers_sum_as_it_is_and_recomputation_does_not(lesson: Page) -> None:
    figure = lesson.locator("#transformer_layer")
    expect(figure.locator(".finding strong")).to_have_text("176,160,768 elements")
    figure.get_by_role("radio", name="each GPU its own tokens").check()
    expect(figure.locator(".finding")).to_contain_text("4 all-gathers and 4 reduce-scatters: 176,160,768 elements")
    figure.get_by_role("radio", name="the whole layer").check()
    expect(figure.locator(".finding strong")).to_have_text("264,241,152 elements")


@pytest.mark.browser
def test_four_programs_stand_side_by_side_as_measured(lesson: Page) -> None:
    rows = lesson.locator("#experiment-three-hands .tab tbody tr")
    expect(rows).to_have_count(4)
    for row, total in enumerate(("384 B", "192 B", "192 B", "192 B")):
        expect(rows.nth(row)).to_contain_text(total)
        expect(rows.nth(row)).to_contain_text("equal")


@pytest.mark.browser
def test_gloos_gap_is_named(lesson: Page) -> None:
    """In the table at once; GPU by GPU when that is unfolded, where what departs is seen first."""
    experiment = lesson.locator("#experiment-two-halves")
    expect(experiment.locator(".tab mark")).to_have_text(["as gloo predicts; 384 B over the formula"])
    experiment.get_by_text("GPU by GPU").click()
    shown = lesson.locator("#experiment-two-halves .result").nth(2)
    expect(shown).to_be_visible()
    expect(shown).to_contain_text("PyTorch’s gloo backend runs a whole all-reduce")
    expect(lesson.locator("#experiment-two-halves .result").nth(0)).to_be_hidden()


@pytest.mark.browser
def test_a_guess_a_slip_and_a_right_answer_are_kept(lesson: Page) -> None:
    guess(lesson, "how-often", "Twice")
    expect(lesson.locator("#recall-how-often")).to_contain_text("You guessed twice.")
    answer(lesson, "which-group", "8")
    expect(lesson.locator("#question-which-group")).to_contain_text("a head must not be cut in two")
    answer(lesson, "which-group", "4")
    expect(lesson.locator("#question-which-group")).to_contain_text("4, yes.")
    lesson.reload()
    expect(lesson.locator("#question-which-group")).to_contain_text("2 tries so far")


@pytest.mark.browser
def test_figures_and_questions_work_without_a_script(without_script: Page, lesson_url: str) -> None:
    page = without_script
    page.goto(lesson_url)
    page.locator("#matrix_split").get_by_role("radio", name="two layers as a pair").check()
    page.locator("#matrix_split").get_by_role("button", name="Show these values").click()
    expect(page.locator("#matrix_split .finding strong")).to_have_text("6 elements")
    answer(page, "idle-columns", "384")
    expect(page.locator("#question-idle-columns")).to_contain_text("took your word")


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(page: Page, lesson_url: str, theme: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    page.goto(lesson_url)
    answer(page, "pairs", "192")
    expect(page.locator("#question-pairs")).to_contain_text("Not 192.")
    assert axe_findings(page) == []


@pytest.mark.browser
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_wider_than_the_page(page: Page, lesson_url: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{lesson_url}?matrix_split.P=8&transformer_layer.recompute=full")
    assert is_no_wider_than_its_window(page)


def _any_value(control: Control) -> st.SearchStrategy[int | str]:
    if isinstance(control, Choice):
        return st.sampled_from([option.value for option in control.options])
    return st.integers(0, (control.maximum - control.minimum) // control.step).map(
        lambda step: control.minimum + step * control.step)


@pytest.mark.parametrize("name", OWN_FIGURES)
@given(data=st.data())
@settings(max_examples=25)
def test_every_drawing_is_well_formed_and_named(client: TestClient, name: str, data: st.DataObject) -> None:
    query = data.draw(st.fixed_dictionaries({control.name: _any_value(control) for control in FIGURES[name].fields}))
    html = client.get(f"/figures/{name}?{urlencode(query)}").text
    assert "style=" not in html
    drawings = [ET.fromstring(drawing) for drawing in DRAWING.findall(html)]
    charts = [drawing for drawing in drawings if drawing.get("role") == "img"]
    assert len(charts) == 2
    for chart in charts:
        title = chart.find("title")
        assert title is not None
        assert title.text
        assert chart.get("aria-labelledby") == title.get("id")
    assert all(drawing.get("aria-hidden") == "true" or drawing in charts for drawing in drawings)
