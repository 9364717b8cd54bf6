"""A learner in a real Chromium: reads, answers, comes back; with a keyboard, without a script, in both themes."""

from __future__ import annotations

import re

import pytest
from fastapi import FastAPI
from playwright.sync_api import Page, Request, expect

from tests.web.browsing import answer, axe_findings, guess, is_no_wider_than_its_window
from tests.web.sites import LESSON

pytestmark = pytest.mark.browser

WIDTHS = (390, 900, 1440)
PAGES = ("/", LESSON, "/me", "/nothing")
MATH_FONT = "math.woff2"
WEIGHT_LIMIT = 120 * 1024
EIGHT_GPUS = "eight-gpus"


def test_a_wrong_then_a_right_answer_are_kept_after_a_reload(page: Page, live_url: str, complaints: list[str]) -> None:
    page.goto(live_url + LESSON)
    question = page.locator("#question-eight-gpus")
    answer(page, EIGHT_GPUS, "64")
    expect(question).to_contain_text("Not 64.")
    expect(question.locator(".answer")).to_be_focused()
    answer(page, EIGHT_GPUS, "56")
    expect(question).to_contain_text("56, yes.")
    page.reload()
    expect(question).to_contain_text("56, yes.")
    expect(question).to_contain_text("2 tries so far")
    page.goto(live_url)
    expect(page.locator(".toc")).to_contain_text("1 of 5 right")


def test_what_comes_in_is_live_at_once(page: Page, live_url: str) -> None:
    """Who types on must not meet a form that the script does not know yet, nor a focus that moves some moments later."""
    page.goto(live_url + LESSON)
    page.evaluate("""() => document.addEventListener("htmx:afterOnLoad", event => {
      if (event.detail.requestConfig.path.includes("/checkpoints/")) window.focused = document.activeElement.id;
    })""")
    answer(page, EIGHT_GPUS, "64")
    expect(page.locator("#question-eight-gpus")).to_contain_text("Not 64.")
    assert page.evaluate("window.focused") == "feedback-eight-gpus"


def test_a_question_is_answered_with_the_keyboard_alone(page: Page, live_url: str, complaints: list[str]) -> None:
    """What cannot be read leaves the keyboard in the field, whose help is read out with it; what is graded moves it on."""
    page.goto(live_url + LESSON)
    field = page.locator("#question-break-even").get_by_role("textbox")
    field.focus()
    page.keyboard.type("pear")
    page.keyboard.press("Enter")
    expect(page.locator("#feedback-break-even")).to_contain_text("Not counted as a try.")
    expect(field).to_be_focused()
    expect(field).to_have_accessible_description(re.compile("Write one number"))
    page.keyboard.press("Control+A")
    page.keyboard.type("2 tokens")
    page.keyboard.press("Enter")
    expect(page.locator("#feedback-break-even")).to_contain_text("2, yes.")
    expect(page.locator("#feedback-break-even")).to_be_focused()


def test_other_numbers_come_without_leaving_the_page(page: Page, live_url: str, complaints: list[str]) -> None:
    page.goto(live_url + LESSON)
    answer(page, EIGHT_GPUS, "56")
    question = page.locator("#question-eight-gpus")
    expect(question.locator(".answer")).to_be_focused()
    prompt = question.locator("legend").inner_text()
    question.get_by_role("link", name="The same with other numbers").click()
    expect(question.get_by_role("radio").first).to_be_focused()
    expect(question.get_by_role("button")).to_have_text("Check my answer")
    expect(question.locator("legend")).not_to_have_text(prompt)
    expect(page).to_have_url(live_url + LESSON)


def test_a_guess_meets_its_reminder_below_the_figure(page: Page, live_url: str, complaints: list[str]) -> None:
    page.goto(live_url + LESSON)
    guess(page, "most-traffic", "The matrices")
    expect(page.locator("#recall-most-traffic")).to_contain_text("You guessed the matrices.")
    page.reload()
    expect(page.locator("#prediction-most-traffic")).to_contain_text("Your guess is kept")


def test_reading_to_the_end_of_a_section_moves_the_rail_on(page: Page, live_url: str, complaints: list[str]) -> None:
    page.goto(live_url + LESSON)
    page.locator("#intuition h2").scroll_into_view_if_needed()
    expect(page.locator(".rail .done").first).to_contain_text("Hook")
    page.reload()
    expect(page.locator(".rail .done").first).to_contain_text("Hook")


@pytest.mark.parametrize("width", WIDTHS)
def test_the_rail_marks_the_section_on_screen_and_ticks_those_that_are_done(
    page: Page, live_url: str, complaints: list[str], width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(live_url + LESSON)
    here = page.locator("#rail [aria-current]")
    for section, title in (("formalize", "Formalize"), ("summary", "Summary"), ("play", "Play"), ("hook", "Hook")):
        page.locator(f"#rail-{section}").click()
        expect(here).to_contain_text(title)  # where reading goes on is still the hook
        expect(page.locator("#rail b")).to_have_text(title)
    page.locator("#hook .visit").scroll_into_view_if_needed()
    expect(page.locator("#rail li.done").first).to_contain_text("Hook")
    expect(here).to_have_text("Hook, done")  # in the rail that the server has sent since, where reading goes on after it


def test_back_and_forward_show_whole_pages(page: Page, live_url: str, complaints: list[str]) -> None:
    page.goto(live_url)
    page.get_by_role("link", name="Split three ways").click()
    page.wait_for_load_state()
    answer(page, EIGHT_GPUS, "64")
    expect(page.locator("#question-eight-gpus")).to_contain_text("Not 64.")
    page.get_by_role("link", name="Course map").first.click()
    page.go_back()
    expect(page.get_by_role("heading", name="Split three ways", level=1)).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("heading", name="Course map")).to_be_visible()


def test_everything_works_without_a_script(without_script: Page, live_url: str) -> None:
    page = without_script
    page.goto(f"{live_url}{LESSON}?volume.P=8")
    guess(page, "most-traffic", "The matrices")
    expect(page.locator("#recall-most-traffic")).to_contain_text("You guessed the matrices.")
    answer(page, EIGHT_GPUS, "64")
    expect(page.locator("#question-eight-gpus")).to_contain_text("Not 64.")
    expect(page).to_have_url(f"{live_url}{LESSON}?volume.P=8#question-eight-gpus")
    page.locator("#question-break-even").get_by_role("textbox").fill("pear")
    page.locator("#question-break-even").get_by_role("button").click()
    expect(page.locator("#question-break-even")).to_contain_text("Not counted as a try.")
    answer(page, EIGHT_GPUS, "56")
    expect(page.locator("#question-eight-gpus")).to_contain_text("56, yes.")
    page.goto(f"{live_url}{LESSON}?volume.P=8")
    page.locator("#hook").get_by_role("button", name="I have read this section").click()
    expect(page).to_have_url(f"{live_url}{LESSON}?volume.P=8#intuition")
    expect(page.locator("#rail li.done")).to_contain_text("Hook")
    page.goto(live_url)
    expect(page.locator(".toc")).to_contain_text("1 of 7 sections, 1 of 5 right")


def test_progress_is_deleted_for_good(page: Page, live_url: str, complaints: list[str]) -> None:
    page.goto(live_url + LESSON)
    answer(page, EIGHT_GPUS, "56")
    expect(page.locator("#question-eight-gpus")).to_contain_text("56, yes.")
    page.goto(f"{live_url}/me")
    page.get_by_label("Yes, delete all of it").check()
    page.get_by_role("button", name="Delete my data").click()
    expect(page.locator(".lede")).to_have_text("Nothing is kept about this browser.")
    page.goto(live_url + LESSON)
    expect(page.locator("#question-eight-gpus .answer")).to_have_count(0)


def test_the_theme_button_offers_the_other_theme_and_keeps_the_place(page: Page, live_url: str, complaints: list[str]) -> None:
    page.goto(f"{live_url}{LESSON}?volume.P=8")
    page.get_by_role("button", name="Dark theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page).to_have_url(f"{live_url}{LESSON}?volume.P=8")
    expect(page.get_by_role("button", name="Light theme")).to_be_visible()
    expect(page.get_by_role("button", name="Dark theme")).to_be_hidden()


def test_a_server_that_is_gone_is_said_and_the_answer_stays(page: Page, live_url: str) -> None:
    page.goto(live_url + LESSON)
    field = page.locator("#question-break-even").get_by_role("textbox")
    field.fill("2")
    page.context.set_offline(True)
    field.press("Enter")
    expect(page.locator("#offline")).to_be_visible()
    expect(field).to_have_value("2")
    page.context.set_offline(False)
    field.press("Enter")
    expect(page.locator("#question-break-even")).to_contain_text("2, yes.")
    expect(page.locator("#offline")).to_be_hidden()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("address", PAGES)
def test_axe_finds_nothing(page: Page, live_url: str, address: str, theme: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    page.goto(live_url + address)
    if address == LESSON:
        answer(page, EIGHT_GPUS, "64")
        expect(page.locator("#question-eight-gpus")).to_contain_text("Not 64.")
    assert axe_findings(page) == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("address", PAGES)
def test_nothing_is_wider_than_the_page(page: Page, live_url: str, address: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(live_url + address)
    assert is_no_wider_than_its_window(page)


def test_every_control_of_a_page_shows_that_it_has_the_focus(page: Page, live_url: str) -> None:
    page.goto(f"{live_url}/me")
    for _ in range(7):
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        assert outline == "2px", page.evaluate("document.activeElement.outerHTML")


def test_the_first_tab_skips_to_the_text(page: Page, live_url: str) -> None:
    page.goto(live_url + LESSON)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the text")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


def test_print_shows_all_results_and_no_controls(page: Page, live_url: str) -> None:
    page.goto(live_url + LESSON)
    page.emulate_media(media="print")
    for result in page.locator(".results > .result").all():
        expect(result).to_be_visible()
    for control in (".rail", ".top", ".btn", ".results > .tabs"):
        expect(page.locator(control).first).to_be_hidden()


def test_a_lesson_weighs_at_most_120_kilobytes_with_an_empty_cache(page: Page, live_url: str) -> None:
    loaded: list[Request] = []
    page.on("requestfinished", lambda request: loaded.append(request))
    page.goto(live_url + LESSON, wait_until="networkidle")
    sizes = {request.url: request.sizes() for request in loaded if not re.search(MATH_FONT, request.url)}
    weights = {address: size["responseBodySize"] + size["responseHeadersSize"] for address, size in sizes.items()}
    assert live_url + LESSON in weights
    assert sum(weights.values()) <= WEIGHT_LIMIT, weights


def test_the_live_application_is_the_one_under_test(web_app: FastAPI, page: Page, live_url: str) -> None:
    page.goto(f"{live_url}/readyz")
    assert '"status":"ready"' in page.content()


def test_a_jump_to_the_end_is_not_reading_on_the_way(page: Page, live_url: str, complaints: list[str]) -> None:
    """What was read is posted by the frame that shows it; the last one here is seen to have been drawn."""
    posted: list[str] = []
    page.on("request", lambda request: posted.append(request.url) if request.method == "POST" else None)
    page.goto(live_url + LESSON)
    page.locator("#rail-summary").click()
    expect(page.locator("#summary h2")).to_be_in_viewport()
    page.locator("#rail-hook").click()
    expect(page.locator("h1")).to_be_in_viewport()
    page.evaluate("() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    assert posted == []
    expect(page.locator("#rail li.done")).to_have_count(0)
