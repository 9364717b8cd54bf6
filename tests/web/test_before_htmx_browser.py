"""A page whose htmx is still on its way, as on a slow network: what is chosen, typed, asked and answered meanwhile counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.web.sites import LESSON

pytestmark = pytest.mark.browser
HTMX = "**/htmx.min.js*"
NUMBERS = "#volume .n"
EIGHT = ["56.0", "28.0", "8.0"]
START_OF_ALL = ["192.0", "96.0", "8.0"]


class Unready:
    """The lesson without htmx, and a way to let it come."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self._held: list[Route] = []
        page.route(HTMX, lambda route: self._held.append(route))
        with page.expect_request(HTMX):
            page.goto(address, wait_until="commit")
        expect(page.locator("#summary")).to_be_attached()  # the last section: all of the page is there

    def let_htmx_come(self) -> None:
        self._held.pop(0).continue_()


@pytest.fixture
def unready(browser: Browser, live_url: str) -> Iterator[Unready]:
    with browser.new_context() as context:
        yield Unready(context.new_page(), live_url + LESSON)


def test_a_number_typed_before_htmx_is_ready_is_drawn_and_its_slider_follows(unready: Unready) -> None:
    unready.page.locator("#volume-P").fill("8")
    unready.page.locator("#volume-P").press("Enter")
    unready.let_htmx_come()
    expect(unready.page.locator(NUMBERS)).to_have_text(EIGHT)
    expect(unready.page.locator("#volume-P-slider")).to_have_value("8")
    expect(unready.page.locator("#volume-P")).to_have_value("8")


def test_a_button_chosen_before_htmx_is_ready_is_drawn_and_kept_in_the_address(unready: Unready) -> None:
    unready.page.get_by_role("radio", name="all GPUs", exact=True).check()
    unready.let_htmx_come()
    expect(unready.page.locator(NUMBERS)).to_have_text(START_OF_ALL)
    assert "volume.scope=all" in unready.page.url


def test_a_run_asked_for_before_htmx_is_ready_waits_for_its_turn(unready: Unready) -> None:
    unready.page.get_by_role("button", name="Run it for real").click()
    expect(unready.page.get_by_role("button", name="Cancel this run")).to_be_visible()
    unready.page.get_by_role("button", name="Cancel this run").click()
    expect(unready.page.get_by_role("button", name="Cancel this run")).to_have_count(0)


def test_an_answer_given_before_htmx_is_ready_is_graded(unready: Unready) -> None:
    question = unready.page.locator("form.q").filter(has=unready.page.get_by_role("radio")).first
    question.get_by_role("radio").first.check()
    question.get_by_role("button", name="Check my answer").click()
    expect(unready.page.locator("form.q .answer").first).to_be_visible()


def test_an_option_marked_before_htmx_is_ready_stays_marked_and_is_graded_in_place(unready: Unready) -> None:
    question = unready.page.locator("form.q").filter(has=unready.page.get_by_role("radio")).first
    question.get_by_role("radio").nth(1).check()
    unready.let_htmx_come()
    unready.page.wait_for_load_state()
    expect(question.get_by_role("radio").nth(1)).to_be_checked()
    question.get_by_role("button", name="Check my answer").click()
    expect(unready.page.locator("form.q .answer").first).to_be_visible()
    assert "#" not in unready.page.url  # graded by htmx: the page has not moved
