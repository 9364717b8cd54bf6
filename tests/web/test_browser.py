"""A learner in a real Chromium: reads, answers, comes back; with a keyboard, without a script, in both themes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.web.sites import LESSON

pytestmark = pytest.mark.browser

WIDTHS = (390, 900, 1440)
PAGES = ("/", LESSON, "/me", "/nothing")
MATH_FONT = "math.woff2"
WEIGHT_LIMIT = 120 * 1024


@pytest.fixture
def complaints(page: Page) -> Iterator[list[str]]:
    """What the browser complains about; a test that leaves something in it fails."""
    found: list[str] = []

    def note(message: ConsoleMessage) -> None:
        expected = "the server responded with a status of" in message.text  # 404 and 422 that the test asks for
        if message.type in ("error", "warning") and not expected:
            found.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: found.append(str(error)))
    yield found
    assert found == []


@pytest.fixture
def without_script(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


def answer(page: Page, value: str) -> None:
    question = page.locator("#question-eight-gpus")
    question.get_by_role("radio", name=value, exact=True).check()
    question.get_by_role("button").click()


def test_a_wrong_then_a_right_answer_are_kept_after_a_reload(page: Page, live_url: str, complaints: list[str]) -> None:
    page.goto(live_url + LESSON)
    question = page.locator("#question-eight-gpus")
    answer(page, "64")
    expect(question).to_contain_text("Not 64.")
    expect(question.locator(".answer")).to_be_focused()
    answer(page, "56")
    expect(question).to_contain_text("56, yes.")
    page.reload()
    expect(question).to_contain_text("56, yes.")
    expect(question).to_contain_text("2 tries so far")
    page.goto(live_url)
    expect(page.locator(".toc")).to_contain_text("1 of 5 right")


def test_a_question_is_answered_with_the_keyboard_alone(page: Page, live_url: str, complaints: list[str]) -> None:
    """What cannot be read leaves the keyboard in the field, whose help is read out with it; what is graded moves on to the feedback."""
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
    answer(page, "56")
    question = page.locator("#question-eight-gpus")
    prompt = question.locator("legend").inner_text()
    question.get_by_role("link", name="The same with other numbers").click()
    expect(question.get_by_role("button")).to_have_text("Check my answer")
    assert question.locator("legend").inner_text() != prompt
    assert page.url == live_url + LESSON
    expect(question.get_by_role("radio").first).to_be_focused()


def test_a_guess_meets_its_reminder_below_the_figure(page: Page, live_url: str, complaints: list[str]) -> None:
    page.goto(live_url + LESSON)
    page.locator("#prediction-most-traffic").get_by_role("radio", name="The matrices", exact=True).check()
    page.get_by_role("button", name="Keep my guess").click()
    expect(page.locator("#recall-most-traffic")).to_contain_text("You guessed the matrices.")
    page.reload()
    expect(page.locator("#prediction-most-traffic")).to_contain_text("Your guess is kept")


def test_reading_to_the_end_of_a_section_moves_the_rail_on(page: Page, live_url: str, complaints: list[str]) -> None:
    page.goto(live_url + LESSON)
    page.locator("#intuition h2").scroll_into_view_if_needed()
    expect(page.locator(".rail .done").first).to_contain_text("Hook")
    page.reload()
    expect(page.locator(".rail .done").first).to_contain_text("Hook")


def test_back_and_forward_show_whole_pages(page: Page, live_url: str, complaints: list[str]) -> None:
    page.goto(live_url)
    page.get_by_role("link", name="Split three ways").click()
    answer(page, "64")
    expect(page.locator("#question-eight-gpus")).to_contain_text("Not 64.")
    page.get_by_role("link", name="Course map").first.click()
    page.go_back()
    expect(page.get_by_role("heading", name="Split three ways", level=1)).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("heading", name="Course map")).to_be_visible()


def test_everything_works_without_a_script(without_script: Page, live_url: str) -> None:
    page = without_script
    page.goto(f"{live_url}{LESSON}?volume.P=8")
    page.locator("#prediction-most-traffic").get_by_role("radio", name="The matrices", exact=True).check()
    page.get_by_role("button", name="Keep my guess").click()
    expect(page.locator("#recall-most-traffic")).to_contain_text("You guessed the matrices.")
    answer(page, "64")
    expect(page.locator("#question-eight-gpus")).to_contain_text("Not 64.")
    assert page.url == f"{live_url}{LESSON}?volume.P=8#question-eight-gpus"
    page.locator("#question-break-even").get_by_role("textbox").fill("pear")
    page.locator("#question-break-even").get_by_role("button").click()
    expect(page.locator("#question-break-even")).to_contain_text("Not counted as a try.")
    answer(page, "56")
    expect(page.locator("#question-eight-gpus")).to_contain_text("56, yes.")
    page.goto(f"{live_url}{LESSON}?volume.P=8")
    page.locator("#hook").get_by_role("button", name="I have read this section").click()
    assert page.url == f"{live_url}{LESSON}?volume.P=8#intuition"
    expect(page.locator("#rail li.done")).to_contain_text("Hook")
    page.goto(live_url)
    expect(page.locator(".toc")).to_contain_text("1 of 7 sections, 1 of 5 right")


def test_progress_is_deleted_for_good(page: Page, live_url: str, complaints: list[str]) -> None:
    page.goto(live_url + LESSON)
    answer(page, "56")
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
    assert page.url == f"{live_url}{LESSON}?volume.P=8"
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
        answer(page, "64")
        expect(page.locator("#question-eight-gpus")).to_contain_text("Not 64.")
    violations = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in violations] == []


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("address", PAGES)
def test_nothing_is_wider_than_the_page(page: Page, live_url: str, address: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(live_url + address)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


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


def test_a_lesson_weighs_at_most_120_kilobytes_with_an_empty_cache(context: BrowserContext, live_url: str) -> None:
    page = context.new_page()
    weights: dict[str, int] = {}

    def weigh(request: object) -> None:
        sizes = request.sizes()  # type: ignore[attr-defined]
        weights[request.url] = sizes["responseBodySize"] + sizes["responseHeadersSize"]  # type: ignore[attr-defined]

    page.on("requestfinished", weigh)
    page.goto(live_url + LESSON, wait_until="networkidle")
    counted = {address: size for address, size in weights.items() if not re.search(MATH_FONT, address)}
    assert sum(counted.values()) <= WEIGHT_LIMIT, counted


def test_the_live_application_is_the_one_under_test(web_app: FastAPI, page: Page, live_url: str) -> None:
    page.goto(f"{live_url}/readyz")
    assert '"status":"ready"' in page.content()


def test_a_jump_to_the_end_is_not_reading_on_the_way(page: Page, live_url: str, complaints: list[str]) -> None:
    page.goto(live_url + LESSON)
    expect(page.locator("#question-same-scope form")).to_be_attached()
    page.locator("#rail-summary").click()
    expect(page.locator("#summary h2")).to_be_in_viewport()
    page.locator("#rail-hook").click()
    expect(page.locator("h1")).to_be_in_viewport()
    assert page.locator("#rail li.done").count() == 0
