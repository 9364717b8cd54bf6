"""What moves on a lesson's page and what does not, at three widths: measured in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.web.browsing import is_no_wider_than_its_window
from tests.web.sites import make_app, serving

pytestmark = pytest.mark.browser

LESSONS = ("split-three-ways", "ring-all-reduce", "data-parallel", "tensor-parallel")
WIDTHS = (390, 900, 1440)
MARGIN = 1200  # from this width on, notes stand beside the text
# Where a figure's charts stand, and of some what stands above them too.
WATCHED = {"volume": "label, .finding, svg.wide-only, svg.narrow-only, .by-rank", "collectives": ".collective",
           "matrix_split": ".finding, svg", "tensor_or_data": "tr, .finding, svg.wide-only, svg.narrow-only"}
SWEEP = """async ([name, watched]) => {
  const form = document.getElementById(`${name}-form`);
  const drawn = () => new Promise(resolve => form.addEventListener("htmx:afterRequest", resolve, { once: true }));
  const below = one => Math.round(one.getBoundingClientRect().top - form.getBoundingClientRect().top);
  const chosen = watched.split(",").map(one => `#${name}-drawing ${one}`).join();
  const tops = () => [...document.querySelectorAll(chosen)].filter(one => one.checkVisibility()).map(below);
  const moved = [];
  for (const slider of form.querySelectorAll("[type=range]")) {
    const start = slider.value, before = tops();
    const [low, high, step] = [slider.min, slider.max, slider.step].map(Number);
    const count = Math.min((high - low) / step, slider.id === "volume-P-slider" ? 63 : 7);
    for (let index = 0; index <= count + 1; index += 1) {
      slider.value = index > count ? start : low + Math.round((high - low) / step * index / count) * step;
      const answer = drawn();
      slider.dispatchEvent(new Event("input", { bubbles: true }));
      await answer;
      const now = tops();
      const moves = before.some((top, place) => Math.abs(top - now[place]) > 1);
      if (moves) moved.push([slider.id, slider.value, before, now].join(" "));
    }
  }
  return moved;
}"""


@pytest.fixture(scope="module")
def course_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the lessons are, all in one course."""
    app = make_app(tmp_path_factory.mktemp("site"), lessons=LESSONS[1:])
    with serving(app) as url:
        yield f"{url}/lessons"
    app.state.site.database.close()


def opened(page: Page, url: str, width: int) -> Page:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(url)
    page.evaluate("document.fonts.ready")
    return page


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("slug", LESSONS)
def test_no_chart_moves_while_a_slider_of_its_figure_does(page: Page, course_url: str, slug: str, width: int) -> None:
    opened(page, f"{course_url}/{slug}", width)
    names = page.locator("form[data-figure][hx-get]").evaluate_all("forms => forms.map(form => form.dataset.figure)")
    assert names
    for name in names:
        watched = WATCHED.get(name, "svg:is(.wide-only, .narrow-only):first-of-type")
        assert page.evaluate(SWEEP, [name, watched]) == [], name


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("slug", LESSONS)
def test_a_note_stands_beside_its_paragraph_or_after_it(page: Page, course_url: str, slug: str, width: int) -> None:
    boxes = opened(page, f"{course_url}/{slug}", width).locator(".noted").evaluate_all("""boxes => boxes.map(box =>
      [box.querySelector("aside"), box.querySelector(":scope > p")].map(one => one.getBoundingClientRect().toJSON()))""")
    assert boxes
    for note, paragraph in boxes:
        if width < MARGIN:
            assert note["top"] >= paragraph["bottom"]
        else:
            assert note["left"] >= paragraph["right"]
            assert abs(note["top"] - paragraph["top"]) < 20 or note["top"] > paragraph["top"]  # or under the note before it


@pytest.mark.parametrize("slug", LESSONS)
def test_worked_examples_stay_in_their_column_and_keep_fractions_off_the_words(page: Page, course_url: str, slug: str) -> None:
    opened(page, f"{course_url}/{slug}", 390)
    assert is_no_wider_than_its_window(page)
    column = page.locator("main").bounding_box()
    assert column is not None
    edges = page.locator(".steps").evaluate_all("tables => tables.map(table => table.getBoundingClientRect().right)")
    assert edges
    assert max(edges) <= column["x"] + column["width"]
    gaps = page.locator(".steps td:has(.why)").evaluate_all("""cells => cells.map(cell =>
      cell.querySelector(".why").getBoundingClientRect().top - cell.querySelector("math").getBoundingClientRect().bottom)""")
    assert min(gaps) >= 3


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("slug", LESSONS)
def test_sliders_that_stand_in_a_row_are_at_one_height(page: Page, course_url: str, slug: str, width: int) -> None:
    rows = opened(page, f"{course_url}/{slug}", width).locator(".dials").evaluate_all("""groups => groups.map(group =>
      [...group.querySelectorAll("[type=range]")].map(slider => Math.round(slider.getBoundingClientRect().top)))""")
    for tops in rows:
        assert all(later - earlier == 0 or later - earlier > 32 for earlier, later in pairwise(tops)), tops


def test_a_collectives_formula_stays_on_one_line(page: Page, course_url: str) -> None:
    opened(page, f"{course_url}/ring-all-reduce?collectives.P=8&collectives.s=1680", 1440)
    heights = page.locator(".collective .num").evaluate_all("""cells => cells.map(cell =>
      cell.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).lineHeight))""")
    expect(page.locator(".collective .num").first).to_contain_text("23,520")
    assert max(heights) < 1.5


@pytest.mark.parametrize("slug", ["split-three-ways", "data-parallel", "tensor-parallel"])
def test_names_of_tabs_keep_apart(page: Page, course_url: str, slug: str) -> None:
    opened(page, f"{course_url}/{slug}", 390)
    gaps = page.locator(".tabs").evaluate_all("""rows => rows.flatMap(row => [...row.children].slice(1).map((tab, index) => {
      const before = row.children[index];
      const sameRow = tab.getBoundingClientRect().top < before.getBoundingClientRect().bottom;
      return sameRow ? tab.getBoundingClientRect().left - before.getBoundingClientRect().right : 16;
    }))""")
    assert gaps
    assert min(gaps) >= 12


@pytest.mark.parametrize("width", [390, 1440])
def test_the_numbers_of_a_worked_example_can_be_covered_and_uncovered_one_by_one(
    without_script: Page, course_url: str, width: int
) -> None:
    page = opened_without_script(without_script, f"{course_url}/split-three-ways", width)
    covers = page.get_by_role("checkbox", name="Uncover this number")
    expect(covers).to_have_count(0)
    page.get_by_role("checkbox", name="Cover the numbers").check()
    assert covers.count() == page.locator(".steps tr:has(.why)").count()
    first, second = page.locator(".steps tr:has(.why)").nth(0), page.locator(".steps tr:has(.why)").nth(1)
    number, cover = (first.locator(one).bounding_box() for one in ("td:nth-child(2)", ".peek"))
    assert number is not None
    assert cover is not None
    assert cover["width"] >= number["width"] - 17
    first.locator(".peek").check()
    expect(first.locator(".peek")).to_have_css("opacity", "0")
    expect(second.locator(".peek")).to_have_css("opacity", "1")
    page.get_by_role("checkbox", name="Cover the numbers").uncheck()
    expect(covers).to_have_count(0)


def opened_without_script(page: Page, url: str, width: int) -> Page:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(url)
    return page
