"""Real runs in a real Chromium, with a real worker: pressed, watched, reloaded, cancelled, shared; without a script too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.web.browsing import another_page, axe_findings, is_no_wider_than_its_window
from tests.web.live_sites import LiveSite, live_site
from tests.web.sites import LESSON

pytestmark = [pytest.mark.browser, pytest.mark.torchrun]

PLACE = "#run-three-cuts"
START = "Run it for real"
FINAL = re.compile("Measured on this server")
FEW_LAYERS = f"{LESSON}?volume.L=2"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSite]:
    with live_site(tmp_path_factory.mktemp("runs")) as site:
        yield site


@pytest.fixture
def site_url(site: LiveSite) -> str:
    return site.url


def press(page: Page) -> None:
    page.locator(PLACE).get_by_role("button", name=START).click()


def read_192_bytes_a_rank(page: Page, place: str = PLACE) -> None:
    """Four ranks of the chosen strategy, data parallel, each beside its outline."""
    shown = page.locator(place).locator(".result").first
    expect(shown.locator(".ranks td:last-child")).to_have_text(["192 B"] * 4)
    expect(shown.locator(".verdict b")).to_have_text(["192 B"] * 3)


@contextmanager
def without_refreshing(page: Page) -> Iterator[None]:
    """A page that loads itself anew every second may do so under a press. 204 leaves it as it stands."""
    def stay(route: Route) -> None:
        if route.request.method == "GET":
            route.fulfill(status=204)
        else:
            route.continue_()

    page.route("**/runs/*", stay)
    page.wait_for_load_state()
    yield
    page.unroute_all()


def test_a_learner_presses_watches_and_reads_192_bytes_a_rank(page: Page, site: LiveSite) -> None:
    page.goto(site.url + FEW_LAYERS)
    page.evaluate("""() => {
      const says = document.querySelector('#run-three-cuts-says');
      window.told = [];
      new MutationObserver(() => window.told.push(says.textContent)).observe(
        says, {childList: true, characterData: true, subtree: true});
    }""")
    with site.held():
        press(page)
        expect(page.locator(PLACE)).to_be_focused()
        expect(page.locator(f"{PLACE} progress")).to_be_visible()
        expect(page.locator("#run-three-cuts-says")).to_contain_text("Data parallel, warming up")
    expect(page.locator(PLACE)).to_contain_text(FINAL)
    read_192_bytes_a_rank(page)
    told = page.evaluate("window.told")
    assert told[-1].startswith("Measured. Data parallel: 768 B, equal.")
    assert all(one != another for one, another in pairwise(told)), "each moment is told once"
    expect(page.locator(PLACE).get_by_role("button", name=START)).to_be_visible()
    page.reload()
    read_192_bytes_a_rank(page)


def test_a_moved_slider_goes_along_without_a_reload(page: Page, site_url: str) -> None:
    page.goto(site_url + LESSON)
    page.locator("#volume-P").fill("2")
    expect(page).to_have_url(re.compile("volume.P=2"))
    press(page)
    expect(page.locator(PLACE)).to_contain_text("P\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}2")
    expect(page.locator(f"{PLACE} .result").first.locator(".ranks tr")).to_have_count(2)


def test_a_strategy_chosen_in_the_figure_is_the_one_whose_result_is_seen(page: Page, site_url: str) -> None:
    page.goto(site_url + LESSON)
    results = page.locator(f"{PLACE} .result")
    expect(results.nth(0)).to_be_visible()
    page.locator("#volume-tensor").check()
    expect(results.nth(1)).to_be_visible()
    expect(results.nth(0)).to_be_hidden()


def test_enter_in_a_number_field_starts_no_run(page: Page, site_url: str) -> None:
    page.goto(site_url + LESSON)
    page.locator("#volume-P").fill("6")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("volume.P=6"))
    expect(page.locator(f"{PLACE} .run-now")).to_have_count(0)


def test_a_reload_in_the_middle_goes_on_to_the_end(page: Page, site: LiveSite) -> None:
    page.goto(f"{site.url}{LESSON}?volume.P=5&volume.H=5")
    with site.held():
        press(page)
        expect(page.locator(f"{PLACE} .run-now")).to_be_visible()
        page.reload()
        expect(page.locator(f"{PLACE} .run-now")).to_be_visible()
    expect(page.locator(PLACE)).to_contain_text(FINAL)
    expect(page.locator(f"{PLACE} .verdict").first).to_be_visible()


def test_a_run_is_cancelled_from_the_page(page: Page, site: LiveSite) -> None:
    page.goto(f"{site.url}{LESSON}?volume.P=8")
    with site.held():
        press(page)
        page.locator(PLACE).get_by_role("button", name="Cancel this run").click()
        expect(page.locator(PLACE)).to_contain_text("This run was cancelled.")
    expect(page.locator(PLACE).get_by_role("button", name=START)).to_be_visible()
    expect(page.locator(PLACE)).to_contain_text("Recorded on")


def test_a_run_that_is_cancelled_after_a_reload_is_told_once_more(page: Page, site: LiveSite) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
    page.goto(f"{site.url}{LESSON}?volume.P=7&volume.H=7")
    with site.held():
        press(page)
        expect(page.locator(f"{PLACE} .run-now")).to_be_visible()
        page.reload()
        page.locator(PLACE).get_by_role("button", name="Cancel this run").click()
        expect(page.locator("#run-three-cuts-says")).to_contain_text("This run was cancelled.")
    assert complaints == []


def test_progress_that_comes_after_the_run_was_taken_back_is_dropped_in_silence(page: Page, site: LiveSite) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
    page.goto(f"{site.url}{LESSON}?volume.P=7&volume.H=6")
    late: list[Route] = []
    page.route("**/status?*", lambda route: route.continue_() if late else late.append(route))
    with site.held():
        with page.expect_request("**/status?*"):
            press(page)
        page.locator(PLACE).get_by_role("button", name="Cancel this run").click()
        expect(page.locator("#run-three-cuts-says")).to_contain_text("This run was cancelled.")
        with page.expect_response(lambda response: response.request is late[0].request):
            late[0].continue_()
        page.evaluate("() => new Promise(resolve => requestAnimationFrame(resolve))")
    expect(page.locator(PLACE)).to_contain_text("This run was cancelled.")
    assert complaints == []


def test_a_value_over_the_cap_is_refused_beside_the_button_and_nothing_is_lost(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{LESSON}?volume.P=64")
    press(page)
    expect(page.locator(f"{PLACE}-refusal")).to_contain_text("Nothing was started. Put P at 8 or less first.")
    expect(page.locator(PLACE)).to_contain_text("Recorded on")
    expect(page.locator("#volume-P")).to_have_value("64")


def test_the_address_of_a_run_opens_in_another_browser(page: Page, browser: Browser, site_url: str) -> None:
    page.goto(site_url + FEW_LAYERS)
    press(page)
    expect(page.locator(PLACE)).to_contain_text(FINAL)
    page.locator(PLACE).get_by_role("link", name="Permalink").click()
    read_192_bytes_a_rank(page)
    with another_page(browser) as other:
        other.goto(page.url)
        read_192_bytes_a_rank(other)
        expect(other.get_by_role("table").last).to_contain_text("gloo")
        with other.expect_download() as script:
            other.get_by_role("link", name="Script").click()
        assert "SPEC = json.loads" in Path(script.value.path()).read_text()


def test_all_of_it_without_a_script(without_script: Page, site: LiveSite) -> None:
    page = without_script
    page.goto(f"{site.url}{LESSON}?volume.P=4&volume.T=2")
    press(page)
    expect(page).to_have_url(re.compile("/runs/"))
    expect(page.locator(PLACE)).to_contain_text(FINAL)
    read_192_bytes_a_rank(page)
    page.get_by_role("link", name="Back to Split three ways").click()
    read_192_bytes_a_rank(page)
    with site.held():
        page.locator(PLACE).get_by_role("button", name="Run again").click()
        expect(page).to_have_url(re.compile("/runs/"))
        with without_refreshing(page):
            page.get_by_role("button", name="Cancel this run").click()
        expect(page.locator(PLACE)).to_contain_text("This run was cancelled")


def test_a_refusal_without_a_script_keeps_the_values(without_script: Page, site_url: str) -> None:
    page = without_script
    page.goto(f"{site_url}{LESSON}?volume.P=64&volume.T=3")
    press(page)
    expect(page.locator(f"{PLACE}-refusal")).to_contain_text("Nothing was started. Put P at 8 or less first.")
    expect(page.locator("#volume-T")).to_have_value("3")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_a_result_its_page_and_the_ledger(page: Page, site_url: str, theme: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    page.goto(site_url + FEW_LAYERS)
    press(page)
    expect(page.locator(PLACE)).to_contain_text(FINAL)
    own = page.locator(PLACE).get_by_role("link", name="Permalink").get_attribute("href")
    for address in ("", f"{site_url}{own}", f"{site_url}/ledger", f"{site_url}/ledger?concept=batch"):
        if address:
            page.goto(address)
        assert axe_findings(page) == [], address


@pytest.mark.parametrize("width", [390, 900, 1440])
def test_no_result_and_no_ledger_is_wider_than_the_page(page: Page, site_url: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(site_url + FEW_LAYERS)
    press(page)
    expect(page.locator(PLACE)).to_contain_text(FINAL)
    own = page.locator(PLACE).get_by_role("link", name="Permalink").get_attribute("href")
    for address in ("", f"{site_url}{own}", f"{site_url}/ledger?concept=collectives"):
        if address:
            page.goto(address)
        assert is_no_wider_than_its_window(page)
