"""The lesson on the ring in a real browser: its figures by keyboard and without a script, its questions, both themes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.web.browsing import answer, axe_findings, is_no_wider_than_its_window, press

pytestmark = pytest.mark.browser

SLUG = "ring-all-reduce"
WIDTHS = (390, 900, 1440)


@pytest.fixture
def page(page: Page) -> Page:
    page.emulate_media(reduced_motion="reduce")
    return page


def move(page: Page, slider: str, key: str, times: int = 1) -> None:
    page.locator(slider).focus()
    press(page, key, times)


def test_the_ring_moves_on_by_keyboard_until_all_have_the_sum(lesson: Page) -> None:
    move(lesson, "#ring-step-slider", "ArrowRight", 5)
    expect(lesson.locator("#ring .finding")).to_contain_text("Each has sent 48 numbers to get there, of a buffer of 32.")
    expect(lesson.locator("#ring-step-slider")).to_be_focused()
    expect(lesson.locator("#ring-status")).to_contain_text("192 of 192 numbers, 768 bytes")
    expect(lesson).to_have_url(re.compile(r"ring\.step=6"))
    move(lesson, "#ring-step-slider", "ArrowRight")
    expect(lesson.locator("#ring-step")).to_have_value("6")


def test_the_steps_end_where_the_ring_of_so_many_gpus_ends(lesson: Page) -> None:
    move(lesson, "#ring-step-slider", "End")
    expect(lesson.locator("#ring-step")).to_have_value("6")
    move(lesson, "#ring-P-slider", "ArrowRight")
    expect(lesson.locator("#ring-step-slider")).to_have_attribute("max", "8")
    expect(lesson.locator("#ring-step")).to_have_value("6")
    move(lesson, "#ring-P-slider", "Home")
    expect(lesson.locator("#ring-step-slider")).to_have_attribute("max", "2")
    expect(lesson.locator("#ring-step")).to_have_value("2")
    expect(lesson.locator("#ring .sub")).to_have_text("All-gather, step 1 of 1.")
    expect(lesson).to_have_url(re.compile(r"ring\.step=2"))


def test_the_table_follows_the_drawing(lesson: Page) -> None:
    move(lesson, "#ring-step-slider", "ArrowRight", 2)
    expect(lesson.locator("#ring-status")).to_contain_text("96 of 192 numbers")
    lesson.locator("#ring details.data summary").click()
    expect(lesson.locator("#ring details .now th")).to_have_text("3")
    expect(lesson.locator("#ring details .now td").last).to_have_text("384")


def test_the_best_line_is_shown_when_it_is_asked_for(lesson: Page) -> None:
    figure = lesson.locator("#alpha_beta")
    expect(figure.locator(".finding")).to_contain_text("Your line misses")
    figure.get_by_role("radio", name="shown").check()
    expect(figure.locator(".finding")).to_contain_text("The best line has")


def test_ring_and_tree_change_places_as_the_buffer_grows(lesson: Page) -> None:
    figure = lesson.locator("#ring_or_tree")
    expect(figure.locator(".finding")).to_contain_text("the tree is")
    move(lesson, "#ring_or_tree-P-slider", "Home")
    expect(figure.locator(".finding")).to_contain_text("on 2 GPUs: the ring is")


def test_gloos_double_reduce_scatter_is_marked_and_explained(lesson: Page) -> None:
    marks = lesson.locator("#collectives mark")
    expect(marks).to_have_text(["twice the formula"])
    expect(lesson.locator("#collectives")).to_contain_text("PyTorch’s gloo backend runs a whole all-reduce")


def test_one_division_too_many_is_called_by_its_name(lesson: Page) -> None:
    question = lesson.locator("#question-hundred-megabytes")
    answer(lesson, "hundred-megabytes", "87.5")
    expect(question).to_contain_text("You divided by")
    answer(lesson, "hundred-megabytes", "700")
    expect(question).to_contain_text("700, yes.")


def test_without_a_script_forms_move_the_ring(without_script: Page, lesson_url: str) -> None:
    page = without_script
    page.goto(lesson_url)
    page.locator("#ring-step").fill("3")
    page.locator("#ring noscript button, #ring form button").first.click()
    expect(page.locator("#ring .sub")).to_have_text("Reduce-scatter, step 3 of 3.")
    expect(page.locator("#ring .finding")).to_contain_text("one finished chunk")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_and_nothing_is_wider_than_the_page(page: Page, lesson_url: str, theme: str, width: int) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{lesson_url}?ring.P=8&ring.step=9&alpha_beta.best=shown")
    assert axe_findings(page) == []
    assert is_no_wider_than_its_window(page)
