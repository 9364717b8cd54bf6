"""GET /figures/{name}, and figures inside a lesson: whatever is asked, 200 or 422, and the drawing is sound."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import fields
from urllib.parse import urlencode

import jinja2
import pytest
from fastapi.testclient import TestClient
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import meta

from app.figures import FIGURES
from app.figures.inputs import Field
from app.web.figures import FigureEmbed, FigureFragment, FigureRefusal
from app.web.render import TEMPLATE_DIR

LESSON = "/lessons/split-three-ways"
NUMBER = re.compile(r'<span class="n">([\d.,]+)</span>')
DRAWING = re.compile(r"<svg.*?</svg>", re.DOTALL)
HTMX = {"hx-request": "true"}

names = st.sampled_from(sorted(FIGURES))
keys = st.sampled_from([field for figure in FIGURES.values() for field in figure.field_names])
texts = st.one_of(
    st.integers(-10, 100).map(str),
    st.sampled_from(["stated", "all", "fp32", "tensor_parallel", "", "\0", "1" * 5000, "８", "NaN"]),
    st.text(max_size=12),
)
pairs = st.lists(st.tuples(st.one_of(keys, keys.map(lambda key: f"volume.{key}"), keys.map(lambda key: f"{key}.from4"),
                                     st.text(max_size=8)), texts), max_size=8)
patient = settings(max_examples=150)


def numbers(html: str) -> list[str]:
    return NUMBER.findall(html)


def encoded(query: list[tuple[str, str]]) -> str:
    return urlencode(query, errors="surrogatepass")


@pytest.mark.parametrize(("query", "shown"), [
    ("", ["48.0", "24.0", "8.0"]), ("?P=8", ["56.0", "28.0", "8.0"]), ("?volume.P=8", ["56.0", "28.0", "8.0"]),
    ("?L=8", ["192.0", "96.0", "56.0"]), ("?batch=equal", ["48.0", "96.0", "32.0"]),
])
def test_a_figure_answers_with_its_numbers(client: TestClient, query: str, shown: list[str]) -> None:
    response = client.get(f"/figures/volume{query}")
    assert response.status_code == 200
    assert numbers(response.text) == shown


def test_with_and_without_htmx_the_answer_is_the_same_fragment(client: TestClient) -> None:
    plain, asked = client.get("/figures/volume"), client.get("/figures/volume", headers=HTMX)
    assert plain.content == asked.content
    assert "<html" not in plain.text
    assert "HX-Request" in plain.headers["vary"]


def test_eight_gpus_show_the_exact_number_beside_the_formulas(client: TestClient) -> None:
    assert "<mark>exactly 24 on 4 of 8 GPUs</mark>" in client.get("/figures/volume?P=8").text


def test_a_browser_that_has_this_fragment_gets_no_body(client: TestClient) -> None:
    first = client.get("/figures/volume?P=8")
    again = client.get("/figures/volume?P=8", headers={"if-none-match": f'"other", W/{first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert "max-age" in first.headers["cache-control"]


def test_other_values_have_another_validator_and_the_same_values_the_same(client: TestClient) -> None:
    tag = {query: client.get(f"/figures/volume{query}").headers["etag"] for query in ("", "?P=4", "?P=5")}
    assert tag[""] == tag["?P=4"] != tag["?P=5"]


def test_a_bad_value_is_422_with_the_message_for_its_field_and_no_drawing(client: TestClient) -> None:
    response = client.get("/figures/volume?P=99", headers=HTMX)
    assert response.status_code == 422
    assert 'id="volume-P-says"' in response.text
    assert "P must be a whole number from 1 to 64, not 99." in response.text
    assert "<svg" not in response.text
    assert response.headers["hx-reswap"] == "none"
    assert response.headers["cache-control"] == "no-store"


def test_a_good_value_clears_every_message(client: TestClient) -> None:
    html = client.get("/figures/volume").text
    places = [field.name for field in FIGURES["volume"].fields if isinstance(field, Field)]
    for name in ["volume", *(f"volume-{field}" for field in places)]:
        assert f'<p class="says" id="{name}-says" role="alert" hx-swap-oob="true"></p>' in html


def test_what_was_sent_is_escaped(client: TestClient) -> None:
    response = client.get("/figures/volume", params={"P": "<script>", "<b>": "1"})
    assert response.status_code == 422
    assert "<script>" not in response.text
    assert "<b>" not in response.text


@pytest.mark.parametrize("name", ["nothing", "Volume", "volume%00", "../volume", "%F0%9F%92%A5"])
def test_an_unknown_figure_is_404(client: TestClient, name: str) -> None:
    assert client.get(f"/figures/{name}").status_code == 404


@patient
@given(name=names, query=pairs)
def test_any_query_gives_200_or_422(client: TestClient, name: str, query: list[tuple[str, str]]) -> None:
    response = client.get(f"/figures/{name}?{encoded(query)}", headers=HTMX)
    assert response.status_code in (200, 422)
    assert response.text


@pytest.mark.parametrize("query", ["P=%00", "P=%ff%fe", "=", "&&&", "P", "P=4&P=5", "%", "P=4;H=4", "volume.=1", "a" * 4000])
def test_broken_queries_give_200_or_422(client: TestClient, query: str) -> None:
    assert client.get(f"/figures/volume?{query}").status_code in (200, 422)


good = st.fixed_dictionaries({
    "P": st.integers(1, 64), "L": st.integers(1, 16), "H": st.integers(2, 64), "T": st.integers(1, 16),
    "scope": st.sampled_from(["stated", "gpu", "all"]), "unit": st.sampled_from(["elements", "fp32"]),
    "batch": st.sampled_from(["taught", "equal"]),
    "strategy": st.sampled_from(["data_parallel", "tensor_parallel", "pipeline_parallel"]),
})


@settings(max_examples=40)
@given(query=good)
def test_every_drawing_is_well_formed_named_and_free_of_style_attributes(client: TestClient, query: dict[str, object]) -> None:
    html = client.get("/figures/volume", params=query).text
    assert "style=" not in html
    drawings = [ET.fromstring(drawing) for drawing in DRAWING.findall(html)]
    charts = [drawing for drawing in drawings if drawing.get("role") == "img" and drawing.get("viewBox")]
    assert len(charts) == 2
    for chart in charts:
        title, description = chart.find("title"), chart.find("desc")
        assert title is not None
        assert description is not None
        assert (chart.get("aria-labelledby"), chart.get("aria-describedby")) == (title.get("id"), description.get("id"))
    assert all(drawing.get("aria-hidden") == "true" or drawing.get("role") == "img" for drawing in drawings)


def test_what_moves_is_well_formed_and_holds_all_three_strategies(client: TestClient) -> None:
    html = client.get("/figures/what_moves?strategy=tensor_parallel").text
    assert [ET.fromstring(drawing).tag for drawing in DRAWING.findall(html)] == ["svg"] * 6
    assert html.count('class="mv moves') == 3
    assert 'class="mv moves ax-tensor chosen"' in html
    assert "style=" not in html


def test_the_table_follows_the_drawing(client: TestClient) -> None:
    html = client.get("/figures/volume?P=8&strategy=tensor_parallel").text
    table = html[html.index('id="volume-table"'):]
    rows = [re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", row) for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)]
    assert ["8", "56.0", "28.0; exactly 24 on 4 of 8 GPUs", "8.0"] in rows
    assert ["3", "32"] in rows


def test_a_lesson_shows_its_figures_at_the_values_of_its_address(client: TestClient) -> None:
    assert numbers(client.get(LESSON).text) == ["48.0", "24.0", "8.0"]
    assert numbers(client.get(f"{LESSON}?volume.P=8").text) == ["56.0", "28.0", "8.0"]


def test_without_javascript_a_moved_slider_counts(client: TestClient) -> None:
    response = client.get(f"{LESSON}?volume.P=4&volume.P.from4=8")
    assert response.status_code == 200
    assert numbers(response.text) == ["56.0", "28.0", "8.0"]
    assert 'name="volume.P.from8"' in response.text


def test_a_lesson_with_a_bad_value_is_422_and_keeps_the_last_good_figure_beside_the_message(client: TestClient) -> None:
    response = client.get(f"{LESSON}?volume.P=99&volume.P.from8=8")
    assert response.status_code == 422
    assert numbers(response.text) == ["56.0", "28.0", "8.0"]
    assert "P must be a whole number from 1 to 64, not 99. The figure shows P = 8." in response.text
    assert 'aria-invalid="true"' in response.text


def test_each_form_carries_the_others_values(client: TestClient) -> None:
    html = client.get(f"{LESSON}?volume.P=8&what_moves.strategy=tensor_parallel").text
    forms = {name: html[html.index(f'id="{name}-form"'):].split("</form>")[0] for name in ("volume", "what_moves")}
    assert '<input type="hidden" name="what_moves.strategy" value="tensor_parallel" data-other>' in forms["volume"]
    assert '<input type="hidden" name="volume.P" value="8" data-other>' in forms["what_moves"]
    assert 'type="hidden" name="volume.P"' not in forms["volume"]


@patient
@given(query=pairs)
def test_any_query_of_a_lesson_gives_200_or_422(client: TestClient, query: list[tuple[str, str]]) -> None:
    assert client.get(f"{LESSON}?{encoded(query)}").status_code in (200, 422)


def test_each_context_holds_what_its_templates_use_and_nothing_else() -> None:
    """Drawings are included under both: so the fields of the two that show one are read together."""
    used: set[str] = set()
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATE_DIR))
    for template in (TEMPLATE_DIR / "figures").glob("*.html"):
        used |= meta.find_undeclared_variables(environment.parse(template.read_text()))
    given_names = {field.name for context in (FigureEmbed, FigureFragment, FigureRefusal) for field in fields(context)}
    assert used - {"name", "draw"} == given_names
