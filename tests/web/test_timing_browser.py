"""Times taken for real from the lesson on the ring, in a real browser with a real worker; without a script too."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from app.runs.timing import SIZES
from tests.web.browsing import axe_findings, is_no_wider_than_its_window
from tests.web.live_sites import LiveSite, live_site

pytestmark = [pytest.mark.browser, pytest.mark.torchrun]

SLUG = "ring-all-reduce"
TIMES, COLLECTIVES = "#run-own-machine", "#run-six-collectives"
START = "Run it for real"
FINAL = re.compile("Measured on this server")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveSite]:
    with live_site(tmp_path_factory.mktemp("times"), [SLUG]) as site:
        yield site


@pytest.fixture
def lesson_url(site: LiveSite) -> str:
    return f"{site.url}/lessons/{SLUG}"


def press(page: Page, place: str) -> None:
    page.locator(place).get_by_role("button", name=START).click()


def read_alpha_and_B(page: Page) -> None:
    """Two constants with units and a row for each size; a busy machine may have no line, and then says so."""
    place = page.locator(TIMES)
    expect(place).to_contain_text(FINAL)
    expect(place.locator(".timing tbody tr")).to_have_count(len(SIZES))
    expect(place.locator(".timing .wide-only .dot")).to_have_count(len(SIZES))
    expect(place.locator(".timing .says-it")).to_have_text(
        re.compile("the line misses the measured time by|follow no line with a positive α and B"))
    if place.locator(".timing .term").count():
        expect(place.locator(".timing .term")).to_have_text([
            re.compile(r"[\d.]+ (µs|ms|s)\s*α, for a message"), re.compile(r"[\d.]+ [kMG]B/s\s*B, in one direction")])
        expect(place.locator(".timing .wide-only .curve")).to_have_count(1)
        expect(place.locator(".timing .wide-only rect.cell")).to_have_count(len(SIZES))


def test_a_learner_presses_and_reads_alpha_and_B_of_this_machine(
    lesson: Page, site: LiveSite, complaints: list[str]
) -> None:
    expect(lesson.locator(TIMES)).to_contain_text("Recorded on")
    with site.held():
        press(lesson, TIMES)
        expect(lesson.locator(f"{TIMES} .run-now")).to_be_visible()
    read_alpha_and_B(lesson)
    expect(lesson.locator("#run-own-machine-says")).to_contain_text("Measured.")
    expect(lesson.locator(TIMES)).not_to_contain_text("Recorded on")
    lesson.locator(TIMES).get_by_role("link", name="Permalink").click()
    expect(lesson.get_by_role("heading", level=1)).to_have_text("An all-reduce, timed on two GPUs")
    read_alpha_and_B(lesson)
    assert axe_findings(lesson) == []


def test_the_figures_slider_says_on_how_many_processes(lesson: Page, complaints: list[str]) -> None:
    lesson.locator("#alpha_beta-P").fill("3")
    expect(lesson).to_have_url(re.compile(r"alpha_beta\.P=3"))
    press(lesson, TIMES)
    expect(lesson.locator(f"{TIMES} .own-age")).to_contain_text("P\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}3")
    read_alpha_and_B(lesson)


def test_a_run_under_way_is_cancelled_and_the_recorded_times_come_back(
    lesson: Page, site: LiveSite, complaints: list[str]
) -> None:
    lesson.locator("#alpha_beta-P").fill("4")
    expect(lesson).to_have_url(re.compile(r"alpha_beta\.P=4"))
    with site.held():
        press(lesson, TIMES)
        lesson.locator(TIMES).get_by_role("button", name="Cancel this run").click()
        expect(lesson.locator(TIMES)).to_contain_text("This run was cancelled.")
    expect(lesson.locator(TIMES)).to_contain_text("Recorded on")


def test_without_a_script_the_same_is_pressed_and_read(without_script: Page, lesson_url: str) -> None:
    page = without_script
    page.goto(lesson_url)
    press(page, TIMES)
    expect(page).to_have_url(re.compile("/runs/"))
    read_alpha_and_B(page)
    page.get_by_role("link", name="Back to Ring all-reduce").click()
    read_alpha_and_B(page)


def test_six_collectives_are_counted_in_one_launch_and_read_as_a_table(lesson: Page, complaints: list[str]) -> None:
    press(lesson, COLLECTIVES)
    place = lesson.locator(COLLECTIVES)
    expect(place).to_contain_text(FINAL)
    expect(place.locator(".says-it").first).to_contain_text("All twelve send what was predicted for this backend, to the byte.")
    table = place.locator("table.compared")
    expect(table.get_by_role("row", name="Reduce-scatter by hand").get_by_role("cell").last).to_have_text("equal")
    scatter = table.get_by_role("row", name="Reduce-scatter through gloo").get_by_role("cell")
    for column, text in enumerate(("384 B", "768 B", "768 B")):
        expect(scatter.nth(column)).to_have_text(text)
    expect(scatter.last).to_have_text("as gloo predicts; 384 B over the formula")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 900, 1440])
def test_results_are_no_wider_than_the_page_and_axe_finds_nothing(
    page: Page, lesson_url: str, complaints: list[str], theme: str, width: int
) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(lesson_url)
    for place in (TIMES, COLLECTIVES):
        press(page, place)
        expect(page.locator(place)).to_contain_text(FINAL)
    assert is_no_wider_than_its_window(page)
    assert axe_findings(page) == []
