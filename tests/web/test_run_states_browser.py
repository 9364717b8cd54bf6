"""Runs that do not end well, in a real Chromium: each goes wrong in a rank of a real launch, and the page says so."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.runs import worker_process
from tests.web.browsing import another_page, axe_findings, is_no_wider_than_its_window
from tests.web.sites import LESSON, make_app, serving

pytestmark = [pytest.mark.browser, pytest.mark.torchrun]

PLACE, SAYS, NOTE = "#run-three-cuts", "#run-three-cuts-says", "#run-three-cuts-note"
START = "Run it for real"
AT_4 = re.compile(r"(Measured|Recorded|Tried) at P.=.4, L.=.2, H.=.4, T.=.1\. The figure now stands at P.=.8\.")


@contextmanager
def site(page: Page, folder: Path, strategies: str = "", **chosen: Any) -> Iterator[str]:
    """A site whose worker takes the strategies of a module for those it knows. The page is closed before the site is gone."""
    app = make_app(folder, run_quota=1000, **chosen)
    given = {"strategies": strategies} if strategies else {}
    with serving(app) as url, worker_process.running(folder, app.state.site.settings.storage_url, real=True, **given):
        yield url
        page.close()
    app.state.site.database.close()


def press(page: Page) -> None:
    page.locator(PLACE).get_by_role("button", name=START).click()


def holds_up(page: Page, text: str) -> None:
    """The page says it, to the eye and once to the ear, also after a reload, and is sound."""
    expect(page.locator(PLACE)).to_contain_text(text)
    expect(page.locator(f"{PLACE} .run-now")).to_have_count(0)
    expect(page.locator(SAYS)).not_to_be_empty()
    expect(page.locator(PLACE)).to_be_focused()
    for width in (390, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert is_no_wider_than_its_window(page)
    assert axe_findings(page) == []
    page.reload()
    expect(page.locator(PLACE)).to_contain_text(text)
    expect(page.locator(SAYS)).to_be_empty()


def test_a_rank_that_hangs_is_stopped_by_the_time_limit_and_the_page_says_which(
    page: Page, browser: Browser, complaints: list[str], tmp_path: Path
) -> None:
    with site(page, tmp_path, "tests.rogues.last_rank_hangs", run_seconds=600) as url:
        page.goto(url + LESSON)
        press(page)
        holds_up(page, "The time limit of 600 s ended this run.")
        place = page.locator(PLACE)
        expect(place).to_contain_text("The run did not finish within 600 seconds. At that moment rank")
        expect(place.locator(".phases .stop")).to_contain_text("out of time")
        expect(place.get_by_role("link", name="Script")).to_be_visible()
        place.get_by_text("The last lines it wrote").click()
        expect(place.locator(".log pre")).to_contain_text("last_rank_hangs.py")
        forget(page)
        nothing_is_needed_but_html(browser, url)


def forget(page: Page) -> None:
    """By keyboard: the focus stays in the place, and what stood there before the run is back."""
    page.locator(f"{PLACE}-forget").focus()
    page.keyboard.press("Enter")
    expect(page.locator(PLACE)).to_be_focused()
    expect(page.locator(f"{PLACE} .failed")).to_have_count(0)
    expect(page.locator(SAYS)).to_contain_text("That run is out of this lesson.")
    expect(page.locator(PLACE)).to_contain_text("Recorded on")
    page.reload()
    expect(page.locator(f"{PLACE} .failed")).to_have_count(0)


def nothing_is_needed_but_html(browser: Browser, url: str) -> None:
    """The same without a script: its page comes again by itself, the lesson keeps it, and a form forgets it."""
    with another_page(browser, java_script_enabled=False) as page:
        page.goto(url + LESSON)
        press(page)
        expect(page.locator(PLACE)).to_contain_text("The time limit of 600 s ended this run.")
        page.get_by_role("link", name="Back to Split three ways").click()
        expect(page.locator(PLACE)).to_contain_text("The time limit of 600 s ended this run.")
        page.locator(PLACE).get_by_role("button", name="Forget it").click()
        expect(page).to_have_url(re.compile(LESSON))
        expect(page.locator(f"{PLACE} .failed")).to_have_count(0)


def test_a_rank_that_raises_is_named_with_its_error(page: Page, complaints: list[str], tmp_path: Path) -> None:
    with site(page, tmp_path, "tests.rogues.last_rank_raises") as url:
        page.goto(url + LESSON)
        press(page)
        holds_up(page, "Rank 3 stopped before the run was done.")
        expect(page.locator(PLACE)).to_contain_text("ValueError: the shard of this rank is missing")
        expect(page.locator(f"{PLACE} .failed .cmd").last).to_contain_text("torchrun --nproc-per-node 4")
        with page.expect_download() as script:
            page.locator(PLACE).get_by_role("link", name="Script").click()
        compile(Path(script.value.path()).read_text(), "run.py", "exec")


def test_a_strategy_that_sends_too_much_differs(page: Page, complaints: list[str], tmp_path: Path) -> None:
    with site(page, tmp_path, "tests.rogues.one_more_past_comm") as url:
        page.goto(url + LESSON)
        press(page)
        holds_up(page, "Data parallel differs")
        result = page.locator(f"{PLACE} .result").first
        expect(result).to_contain_text("The sockets carried something else than was predicted.")
        expect(result.locator(".op.differs")).to_have_count(1)
        expect(page.locator(f"{PLACE} .tab")).to_contain_text("differs")


def test_a_connection_that_never_falls_silent_leaves_no_verdict(page: Page, complaints: list[str], tmp_path: Path) -> None:
    with site(page, tmp_path, "tests.rogues.keeps_talking") as url:
        page.goto(url + LESSON)
        press(page)
        holds_up(page, "without a verdict: the reason stands with its numbers.")
        expect(page.locator(f"{PLACE} .result").first).to_contain_text("No verdict: the readings did not settle.")


def test_a_result_of_other_values_is_told_while_the_slider_moves_and_taken_back(
    page: Page, browser: Browser, complaints: list[str], tmp_path: Path
) -> None:
    with site(page, tmp_path) as url:
        page.goto(url + LESSON)
        press(page)
        expect(page.locator(PLACE)).to_contain_text("Measured on this server")
        told_once_and_without_a_shift(page)
        the_button_is_the_next_step(page)
        with another_page(browser, java_script_enabled=False) as plain:
            plain.goto(f"{url}{LESSON}?volume.P=8")
            expect(plain.locator(f"{NOTE} .apart")).to_have_text(AT_4)


def told_once_and_without_a_shift(page: Page) -> None:
    page.evaluate("""says => {
      window.told = [];
      new MutationObserver(() => window.told.push(document.querySelector(says).textContent))
        .observe(document.querySelector(says), {childList: true, characterData: true, subtree: true});
    }""", SAYS)
    apart, slider = page.locator(f"{NOTE} .apart"), page.locator("#volume-P-slider")
    for width in (390, 1440):
        page.evaluate("window.told = []")
        page.set_viewport_size({"width": width, "height": 900})
        slider.focus()
        height = page.locator(f"{PLACE} .go").evaluate("form => form.offsetHeight")
        for value in (5, 6, 7, 8):
            page.keyboard.press("ArrowRight")
            expect(apart).to_contain_text(f"P\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{value}.")
            assert page.locator(f"{PLACE} .go").evaluate("form => form.offsetHeight") == height, "nothing below it moves"
        expect(slider).to_be_focused()
        expect(apart).to_have_text(AT_4)
        for _ in range(4):
            page.keyboard.press("ArrowLeft")
        expect(apart).to_have_count(0)
        expect(page.locator(SAYS)).to_contain_text("The figure stands again")
        first_words = [text.split(" ")[0] for text in page.evaluate("window.told")]
        assert first_words == ["Measured", "The"], "once each way, not at each value"
    page.locator("#volume-P").fill("3")
    expect(page.locator(NOTE)).to_contain_text("Tensor parallel cannot run there: min(P, H) = 3 does not divide H = 4")
    page.locator("#volume-P").fill("64")
    expect(page.locator(NOTE)).to_contain_text("This server runs at most 8 processes, and the figure has 64.")


def the_button_is_the_next_step(page: Page) -> None:
    """A refusal that was pressed for goes with the value it was about; a run at the new values is the new result."""
    press(page)
    expect(page.locator(f"{PLACE}-refusal")).to_contain_text("Nothing was started.")
    page.locator("#volume-P").fill("8")
    expect(page.locator(f"{PLACE}-refusal")).to_be_empty()
    press(page)
    expect(page.locator(f"{PLACE} .own-age")).to_contain_text("P\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}8")
    expect(page.locator(f"{NOTE} .apart")).to_have_count(0)
