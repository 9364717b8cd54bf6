"""Figures in a real browser: by keyboard, in the address bar, through Back and Forward, and without JavaScript."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.web.browsing import another_page, is_no_wider_than_its_window, press
from tests.web.sites import LESSON

pytestmark = pytest.mark.browser
NUMBERS = "#volume .n"
START = ["48.0", "24.0", "8.0"]
EIGHT = ["56.0", "28.0", "8.0"]
GESTURE_PAUSE = 1100  # milliseconds; a change that comes so late is a new step of Back


@pytest.fixture
def lesson(page: Page, live_url: str) -> Page:
    page.goto(live_url + LESSON)
    expect(page.locator(NUMBERS)).to_have_text(START)
    return page


@pytest.mark.parametrize(("field", "times", "shown"), [
    ("P", 4, EIGHT), ("L", 6, ["192.0", "96.0", "56.0"]), ("H", 4, ["192.0", "48.0", "16.0"]),
    ("T", 1, ["48.0", "48.0", "16.0"]),
])
def test_each_slider_moved_by_keyboard_changes_the_numbers(lesson: Page, field: str, times: int, shown: list[str]) -> None:
    slider = lesson.locator(f"#volume-{field}-slider")
    slider.focus()
    press(lesson, "ArrowRight", times)
    expect(lesson.locator(NUMBERS)).to_have_text(shown)
    expect(lesson.locator(f"#volume-{field}")).to_have_value(slider.input_value())
    expect(slider).to_be_focused()
    expect(lesson.locator("#volume-status")).to_contain_text(f"Data parallel {shown[0]}")


def test_ten_held_keys_show_ten_values(lesson: Page) -> None:
    lesson.evaluate("""() => {
      window.seen = [];
      new MutationObserver(() => {
        const text = document.querySelector('#volume .n').textContent;
        if (window.seen.at(-1) !== text) window.seen.push(text);
      }).observe(document.getElementById('volume-drawing'), { childList: true });
    }""")
    lesson.locator("#volume-P-slider").focus()
    for _ in range(10):
        lesson.keyboard.down("ArrowRight")  # without up: a key held down
    lesson.keyboard.up("ArrowRight")
    expect(lesson.locator(NUMBERS).first).to_have_text("59.4")
    assert len(lesson.evaluate("() => window.seen")) == 10


def test_the_address_gives_the_same_state_elsewhere(lesson: Page, browser: Browser) -> None:
    lesson.locator("#volume-P").fill("8")
    lesson.get_by_role("radio", name="all GPUs", exact=True).check()
    lesson.locator("#what_moves-tensor").check()
    expect(lesson).to_have_url(re.compile(r"volume\.P=8.*what_moves\.strategy=tensor_parallel"))
    expect(lesson.locator(NUMBERS)).to_have_text(["448.0", "224.0", "8.0"])
    with another_page(browser) as other:
        other.goto(lesson.url)
        expect(other.locator(NUMBERS)).to_have_text(["448.0", "224.0", "8.0"])
        expect(other.locator(".mv.ax-tensor")).to_be_visible()
        expect(other.locator(".mv.ax-data")).to_be_hidden()


def test_back_and_forward_go_through_the_states_of_the_page(lesson: Page) -> None:
    """On a clock of the test's own: how fast these keys come depends on the machine."""
    lesson.evaluate("now => { performance.now = () => now; }", GESTURE_PAUSE)
    lesson.locator("#volume-P-slider").focus()
    press(lesson, "ArrowRight", 4)
    expect(lesson.locator(NUMBERS)).to_have_text(EIGHT)
    lesson.evaluate("now => { performance.now = () => now; }", 2 * GESTURE_PAUSE)
    lesson.locator("#volume-L-slider").focus()
    press(lesson, "ArrowRight", 1)
    expect(lesson.locator(NUMBERS)).to_have_text(["84.0", "42.0", "16.0"])
    lesson.go_back()
    expect(lesson.locator(NUMBERS)).to_have_text(EIGHT)
    expect(lesson.locator("#volume-L-slider")).to_have_value("2")
    lesson.go_back()
    expect(lesson.locator(NUMBERS)).to_have_text(START)
    expect(lesson).to_have_title(re.compile("^Split"))
    lesson.go_forward()
    expect(lesson.locator(NUMBERS)).to_have_text(EIGHT)


def test_a_bad_number_keeps_the_figure_and_says_what_is_allowed_until_it_is_good_again(lesson: Page) -> None:
    number, says = lesson.locator("#volume-P"), lesson.locator("#volume-P-says")
    number.fill("9")
    expect(lesson.locator("#volume-status")).to_contain_text("P = 9,")
    for bad, message in (("99", "P must be a whole number from 1 to 64, not 99."),
                         ("", "P is empty; it must be a whole number from 1 to 64.")):
        number.fill(bad)
        expect(says).to_have_text(f"{message} The figure still shows P = 9.")
        expect(lesson.locator("#volume-P-slider")).to_have_value("9")
        expect(lesson.locator("#volume-status")).to_contain_text("P = 9,")
        expect(lesson).to_have_url(re.compile(r"volume\.P=9&"))
    number.fill("8")
    expect(lesson.locator(NUMBERS)).to_have_text(EIGHT)
    expect(says).to_be_hidden()


def test_the_strategy_of_a_row_is_chosen_by_keyboard_and_keeps_the_focus(lesson: Page) -> None:
    lesson.locator("#volume-data").focus()
    press(lesson, "ArrowDown", 1)
    expect(lesson.locator("#volume .by-rank h3")).to_have_text("Tensor parallel, GPU by GPU")
    expect(lesson.locator("#volume-tensor")).to_be_focused()
    press(lesson, "ArrowDown", 1)
    expect(lesson.locator("#volume .by-rank h3")).to_have_text("Pipeline parallel, GPU by GPU")


def test_a_slider_moved_before_htmx_is_ready_is_not_lost(page: Page, live_url: str) -> None:
    held: list[Route] = []
    page.route("**/htmx.min.js*", lambda route: held.append(route))
    with page.expect_request("**/htmx.min.js*"):
        page.goto(live_url + LESSON, wait_until="commit")
    slider = page.locator("#volume-P-slider")
    expect(slider).to_be_visible()
    slider.focus()
    press(page, "ArrowRight", 4)
    expect(slider).to_have_value("8")
    held[0].continue_()
    expect(page.locator(NUMBERS)).to_have_text(EIGHT)
    expect(page.locator("#volume-P")).to_have_value("8")


def test_nothing_of_a_figure_breaks_the_policy_of_the_page(lesson: Page, complaints: list[str]) -> None:
    lesson.reload()
    lesson.locator("#volume-P").fill("8")
    expect(lesson.locator(NUMBERS)).to_have_text(EIGHT)


def test_what_is_typed_into_one_figure_is_drawn_though_another_is_touched_at_once(lesson: Page) -> None:
    lesson.evaluate("""() => {
      const type = (id, value) => {
        document.getElementById(id).value = value;
        document.getElementById(id).dispatchEvent(new Event("input", { bubbles: true }));
      };
      type("volume-P", "8");
      document.getElementById("what_moves-tensor").click();
    }""")
    expect(lesson.locator(NUMBERS)).to_have_text(EIGHT)
    expect(lesson).to_have_url(re.compile(r"volume\.P=8"))


@pytest.mark.parametrize("width", [390, 900, 1440])
def test_a_figure_is_no_wider_than_its_page_and_no_text_of_it_is_small(page: Page, live_url: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{live_url}{LESSON}?volume.P=8&volume.L=16&volume.H=64&volume.T=16&volume.scope=all&volume.unit=fp32")
    assert is_no_wider_than_its_window(page)
    sizes = page.evaluate("""() => [...document.querySelectorAll('#volume svg text, #what_moves svg text')]
      .filter(text => text.getClientRects().length && text.checkVisibility())
      .map(text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)""")
    assert len(sizes) > 20
    assert min(sizes) >= 11.9


def test_in_print_all_strategies_are_shown_and_no_control(lesson: Page) -> None:
    lesson.emulate_media(media="print")
    for axis in ("data", "tensor", "pipeline"):
        expect(lesson.locator(f".mv.ax-{axis}")).to_be_visible()
    expect(lesson.locator("#volume-P-slider")).to_be_hidden()
    expect(lesson.locator("#what_moves .tabs")).to_be_hidden()


@pytest.fixture
def plain_page(without_script: Page, live_url: str) -> Page:
    without_script.goto(f"{live_url}{LESSON}?what_moves.strategy=tensor_parallel")
    return without_script


def test_without_javascript_a_slider_and_a_button_do_the_same(plain_page: Page) -> None:
    plain_page.locator("#volume-P-slider").focus()
    press(plain_page, "ArrowRight", 4)
    plain_page.locator("#volume").get_by_role("button", name="Show these values").click()
    expect(plain_page.locator(NUMBERS)).to_have_text(EIGHT)
    expect(plain_page.locator(".mv.ax-tensor")).to_be_visible()


def test_without_javascript_a_bad_number_keeps_the_figure_and_says_what_is_allowed(plain_page: Page) -> None:
    plain_page.locator("#volume-P").fill("99")
    plain_page.locator("#volume").get_by_role("button", name="Show these values").click()
    expect(plain_page.locator("#volume-P-says")).to_have_text(
        "P must be a whole number from 1 to 64, not 99. The figure shows P = 4."
    )
    expect(plain_page.locator(NUMBERS)).to_have_text(START)


def test_without_javascript_the_tabs_of_what_moves_still_switch(plain_page: Page) -> None:
    plain_page.locator("#what_moves-pipeline").check()
    expect(plain_page.locator(".mv.ax-pipeline")).to_be_visible()
    expect(plain_page.locator(".mv.ax-tensor")).to_be_hidden()
