"""Fixtures and words of the tests in a real Chromium: patient with a slow machine, and strict about what the browser says.

A module that tests one lesson names it as SLUG; `lesson_app`, `lesson_url` and `lesson` then serve and open it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from fastapi import FastAPI
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect

from tests.web.sites import make_app, serving

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# As root Chromium has no sandbox; the rest keeps it from calling out.
BROWSER_FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync"]
PATIENCE = 120_000  # milliseconds for what takes some tens of them, on a machine that has other things to do
EXPECTED = "the server responded with a status of"  # 404 and 422 that the test asks for
# Chromium's own clock: said of a font that the page uses when the first layout comes late. test_static.py looks at preloads.
LATE = "was preloaded using link preload but not used within a few seconds"

expect.set_options(timeout=PATIENCE)


def pytest_configure(config: pytest.Config) -> None:
    """pytest-playwright's own base_url fixture is written in a way that pytest means to drop."""
    config.addinivalue_line("filterwarnings", "ignore:Session-scoped fixtures defined as instance methods")


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """The Chromium on PATH; without one, whatever Playwright has installed."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    chosen = {"args": BROWSER_FLAGS, "timeout": PATIENCE} | ({"executable_path": found} if found else {})
    return browser_type_launch_args | chosen


@pytest.fixture
def context(context: BrowserContext) -> BrowserContext:
    context.set_default_timeout(PATIENCE)
    return context


@contextmanager
def another_page(browser: Browser, **chosen: Any) -> Iterator[Page]:
    """A page of somebody else, with a browser set up as `chosen`."""
    with browser.new_context(**chosen) as context:
        context.set_default_timeout(PATIENCE)
        yield context.new_page()


@pytest.fixture
def without_script(browser: Browser) -> Iterator[Page]:
    with another_page(browser, java_script_enabled=False) as page:
        yield page


@pytest.fixture
def complaints(page: Page) -> Iterator[list[str]]:
    """What the browser complains about; a test that leaves something in it fails."""
    found: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and EXPECTED not in message.text and LATE not in message.text:
            found.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: found.append(str(error)))
    yield found
    assert found == []


@pytest.fixture(scope="module")
def lesson_app(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """A site whose course has the flagship and the lesson of the module."""
    app = make_app(tmp_path_factory.mktemp("site"), lessons=[request.module.SLUG])
    yield app
    app.state.site.database.close()


@pytest.fixture(scope="module")
def lesson_url(request: pytest.FixtureRequest, lesson_app: FastAPI) -> Iterator[str]:
    """Where that lesson is, behind a real socket."""
    with serving(lesson_app) as url:
        yield f"{url}/lessons/{request.module.SLUG}"


@pytest.fixture
def lesson(page: Page, lesson_url: str) -> Page:
    """That lesson, open."""
    page.goto(lesson_url)
    return page


def press(page: Page, key: str, times: int = 1) -> None:
    for _ in range(times):
        page.keyboard.press(key)


def answer(page: Page, question: str, value: str) -> None:
    """One of the options of a question, checked."""
    form = page.locator(f"#question-{question}")
    form.get_by_role("radio", name=value, exact=True).check()
    form.get_by_role("button").click()


def guess(page: Page, prediction: str, label: str) -> None:
    form = page.locator(f"#prediction-{prediction}")
    form.get_by_role("radio", name=label, exact=True).check()
    form.get_by_role("button", name="Keep my guess").click()


def axe_findings(page: Page) -> list[tuple[str, str]]:
    """Each rule that the page breaks, and the first element that does."""
    return [(one["id"], one["nodes"][0]["html"]) for one in Axe().run(page).response["violations"]]


def is_no_wider_than_its_window(page: Page) -> bool:
    fits: bool = page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    return fits
