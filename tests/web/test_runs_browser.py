"""Real runs in a real Chromium, with a real worker: pressed, watched, reloaded, cancelled, shared; without a script too."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.runs import worker_process
from tests.web.sites import LESSON, make_app

pytestmark = [pytest.mark.browser, pytest.mark.torchrun, pytest.mark.timeout(180)]

PLACE = "#run-three-cuts"
START = "Run it for real"
FINAL = re.compile("Measured on this server")
PATIENCE = 60_000  # milliseconds; on a busy machine a launch takes its time
FEW_LAYERS = f"{LESSON}?volume.L=2"


@pytest.fixture(scope="module")
def site_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A site with a worker of its own, whose launch host is warm after the first run."""
    folder = tmp_path_factory.mktemp("runs")
    app = make_app(folder, run_quota=1000)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        with worker_process.running(folder, app.state.site.settings.storage_url, real=True):
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()
    app.state.site.database.close()


@pytest.fixture
def without_script(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


def press(page: Page) -> None:
    page.locator(PLACE).get_by_role("button", name=START).click()


def read_192_bytes_a_rank(page: Page, place: str = PLACE) -> None:
    """Four ranks of the chosen strategy, data parallel, each beside its outline."""
    shown = page.locator(place).locator(".result").first
    expect(shown.locator(".ranks td:last-child")).to_have_text(["192 B"] * 4)
    expect(shown.locator(".verdict b")).to_have_text(["192 B"] * 3)


def test_a_learner_presses_watches_and_reads_192_bytes_a_rank(page: Page, site_url: str) -> None:
    told: list[str] = []
    page.expose_function("note", lambda text: told.append(text))
    page.goto(site_url + FEW_LAYERS)
    page.evaluate("""() => new MutationObserver(() => note(document.querySelector('#run-three-cuts-says').textContent))
        .observe(document.querySelector('#run-three-cuts-says'), {childList: true, characterData: true, subtree: true})""")
    press(page)
    expect(page.locator(PLACE)).to_be_focused()
    expect(page.locator(f"{PLACE} progress")).to_be_visible()
    expect(page.locator(PLACE)).to_contain_text(FINAL, timeout=PATIENCE)
    read_192_bytes_a_rank(page)
    assert told[-1].startswith("Measured. Data parallel: equal, 768 B.")
    assert all(one != another for one, another in pairwise(told)), "each moment is told once"
    assert any("find each other" in text or "Data parallel" in text for text in told[:-1])
    expect(page.locator(PLACE).get_by_role("button", name=START)).to_be_visible()
    page.reload()
    read_192_bytes_a_rank(page)


def test_a_moved_slider_goes_along_without_a_reload(page: Page, site_url: str) -> None:
    page.goto(site_url + LESSON)
    page.locator("#volume-P").fill("2")
    expect(page).to_have_url(re.compile("volume.P=2"))
    press(page)
    expect(page.locator(PLACE)).to_contain_text("P\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}2", timeout=PATIENCE)
    expect(page.locator(f"{PLACE} .result").first.locator(".ranks tr")).to_have_count(2)


def test_enter_in_a_number_field_starts_no_run(page: Page, site_url: str) -> None:
    page.goto(site_url + LESSON)
    page.locator("#volume-P").fill("6")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("volume.P=6"))
    expect(page.locator(f"{PLACE} .run-now")).to_have_count(0)


def test_a_reload_in_the_middle_goes_on_to_the_end(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{LESSON}?volume.P=5&volume.H=5")
    press(page)
    expect(page.locator(f"{PLACE} .run-now")).to_be_visible()
    page.reload()
    expect(page.locator(PLACE)).to_contain_text(FINAL, timeout=PATIENCE)
    expect(page.locator(f"{PLACE} .verdict").first).to_be_visible()


def test_a_run_is_cancelled_from_the_page(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{LESSON}?volume.P=8&volume.L=16&volume.H=64&volume.T=16")
    press(page)
    page.locator(PLACE).get_by_role("button", name="Cancel this run").click()
    expect(page.locator(PLACE)).to_contain_text("This run was cancelled.", timeout=PATIENCE)
    expect(page.locator(PLACE).get_by_role("button", name=START)).to_be_visible()
    expect(page.locator(PLACE)).to_contain_text("Recorded on")


def test_a_value_over_the_cap_is_refused_beside_the_button_and_nothing_is_lost(page: Page, site_url: str) -> None:
    page.goto(f"{site_url}{LESSON}?volume.P=64")
    press(page)
    expect(page.locator(f"{PLACE}-refusal")).to_contain_text("P = 64: must be a whole number from 1 to 8.")
    expect(page.locator(PLACE)).to_contain_text("Recorded on")
    expect(page.locator("#volume-P")).to_have_value("64")


def test_the_address_of_a_run_opens_in_another_browser(page: Page, browser: Browser, site_url: str) -> None:
    page.goto(site_url + FEW_LAYERS)
    press(page)
    expect(page.locator(PLACE)).to_contain_text(FINAL, timeout=PATIENCE)
    page.locator(PLACE).get_by_role("link", name="Permalink").click()
    read_192_bytes_a_rank(page)
    other = browser.new_context().new_page()
    other.goto(page.url)
    read_192_bytes_a_rank(other)
    expect(other.get_by_role("table").last).to_contain_text("gloo")
    with other.expect_download() as script:
        other.get_by_role("link", name="Script").click()
    assert "SPEC = json.loads" in Path(script.value.path()).read_text()
    other.context.close()


def test_all_of_it_without_a_script(without_script: Page, site_url: str) -> None:
    page = without_script
    page.goto(f"{site_url}{LESSON}?volume.P=4&volume.T=2")
    press(page)
    expect(page).to_have_url(re.compile("/runs/"))
    expect(page.locator(PLACE)).to_contain_text(FINAL, timeout=PATIENCE)
    read_192_bytes_a_rank(page)
    page.get_by_role("link", name="Back to Split three ways").click()
    read_192_bytes_a_rank(page)
    page.locator(PLACE).get_by_role("button", name="Run again").click()
    expect(page).to_have_url(re.compile("/runs/"))
    page.get_by_role("button", name="Cancel this run").click()
    expect(page.locator(PLACE)).to_contain_text(re.compile("This run was cancelled|Measured on this server"), timeout=PATIENCE)


def test_a_refusal_without_a_script_keeps_the_values(without_script: Page, site_url: str) -> None:
    page = without_script
    page.goto(f"{site_url}{LESSON}?volume.P=64&volume.T=3")
    press(page)
    expect(page.locator(f"{PLACE}-refusal")).to_contain_text("P = 64: must be a whole number from 1 to 8.")
    expect(page.locator("#volume-T")).to_have_value("3")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_a_result_its_page_and_the_ledger(page: Page, site_url: str, theme: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    page.goto(site_url + FEW_LAYERS)
    press(page)
    expect(page.locator(PLACE)).to_contain_text(FINAL, timeout=PATIENCE)
    own = page.locator(PLACE).get_by_role("link", name="Permalink").get_attribute("href")
    for address in ("", f"{site_url}{own}", f"{site_url}/ledger", f"{site_url}/ledger?concept=batch"):
        if address:
            page.goto(address)
        violations = Axe().run(page).response["violations"]
        assert [(address, one["id"], one["nodes"][0]["html"]) for one in violations] == []


@pytest.mark.parametrize("width", [390, 900, 1440])
def test_no_result_and_no_ledger_is_wider_than_the_page(page: Page, site_url: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(site_url + FEW_LAYERS)
    press(page)
    expect(page.locator(PLACE)).to_contain_text(FINAL, timeout=PATIENCE)
    own = page.locator(PLACE).get_by_role("link", name="Permalink").get_attribute("href")
    for address in ("", f"{site_url}{own}", f"{site_url}/ledger?concept=collectives"):
        if address:
            page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
