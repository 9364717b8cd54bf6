"""The lesson on the ring in a real browser: its figures by keyboard and without a script, its questions, both themes."""

from __future__ import annotations

import re
import shutil
import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from app import settings
from tests.web.sites import make_app

pytestmark = pytest.mark.browser

LESSON = "/lessons/ring-all-reduce"
WIDTHS = (390, 900, 1440)


@pytest.fixture(scope="module")
def site_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A site with this lesson alone, behind a real socket."""
    folder = tmp_path_factory.mktemp("ring")
    shutil.copytree(settings.COURSE_DIR / "ring-all-reduce", folder / "course" / "ring-all-reduce")
    shutil.copy(settings.COURSE_DIR / "course.yaml", folder / "course")
    app = make_app(folder)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()
    app.state.site.database.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(reduced_motion="reduce") as context:
        yield context.new_page()


@pytest.fixture
def lesson(page: Page, site_url: str) -> Page:
    page.goto(site_url + LESSON)
    expect(page.locator("#ring .sub")).to_have_text("Reduce-scatter, step 1 of 3.")
    return page


def press(page: Page, slider: str, key: str, times: int) -> None:
    page.locator(slider).focus()
    for _ in range(times):
        page.keyboard.press(key)


def test_the_ring_moves_on_by_keyboard_until_all_have_the_sum(lesson: Page) -> None:
    press(lesson, "#ring-step-slider", "ArrowRight", 5)
    expect(lesson.locator("#ring .finding")).to_contain_text("Each has sent 48 numbers to get there, of a buffer of 32.")
    expect(lesson.locator("#ring-step-slider")).to_be_focused()
    expect(lesson.locator("#ring-status")).to_contain_text("192 of 192 numbers, 768 bytes")
    expect(lesson).to_have_url(re.compile(r"ring\.step=6"))
    press(lesson, "#ring-step-slider", "ArrowRight", 1)
    expect(lesson.locator("#ring-step")).to_have_value("6")


def test_the_steps_end_where_the_ring_of_so_many_gpus_ends(lesson: Page) -> None:
    press(lesson, "#ring-step-slider", "End", 1)
    expect(lesson.locator("#ring-step")).to_have_value("6")
    press(lesson, "#ring-P-slider", "ArrowRight", 1)
    expect(lesson.locator("#ring-step-slider")).to_have_attribute("max", "8")
    expect(lesson.locator("#ring-step")).to_have_value("6")
    press(lesson, "#ring-P-slider", "Home", 1)
    expect(lesson.locator("#ring-step-slider")).to_have_attribute("max", "2")
    expect(lesson.locator("#ring-step")).to_have_value("2")
    expect(lesson.locator("#ring .sub")).to_have_text("All-gather, step 1 of 1.")
    expect(lesson).to_have_url(re.compile(r"ring\.step=2"))


def test_the_table_follows_the_drawing(lesson: Page) -> None:
    press(lesson, "#ring-step-slider", "ArrowRight", 2)
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
    press(lesson, "#ring_or_tree-P-slider", "Home", 1)
    expect(figure.locator(".finding")).to_contain_text("on 2 GPUs: the ring is")


def test_gloos_double_reduce_scatter_is_marked_and_explained(lesson: Page) -> None:
    marks = lesson.locator("#collectives mark")
    expect(marks).to_have_text(["twice the formula"])
    expect(lesson.locator("#collectives")).to_contain_text("gloo has no reduce-scatter")


def test_one_division_too_many_is_called_by_its_name(lesson: Page) -> None:
    question = lesson.locator("#question-hundred-megabytes")
    question.get_by_role("radio", name="87.5", exact=True).check()
    question.get_by_role("button").click()
    expect(question).to_contain_text("You divided by")
    question.get_by_role("radio", name="700", exact=True).check()
    question.get_by_role("button").click()
    expect(question).to_contain_text("700, yes.")


def test_without_a_script_forms_move_the_ring(browser: Browser, site_url: str) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(site_url + LESSON)
        page.locator("#ring-step").fill("3")
        page.locator("#ring noscript button, #ring form button").first.click()
        expect(page.locator("#ring .sub")).to_have_text("Reduce-scatter, step 3 of 3.")
        expect(page.locator("#ring .finding")).to_contain_text("one finished chunk")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_and_nothing_is_wider_than_the_page(page: Page, site_url: str, theme: str, width: int) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{site_url}{LESSON}?ring.P=8&ring.step=9&alpha_beta.best=shown")
    violations = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in violations] == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
