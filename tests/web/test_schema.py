"""Schemathesis over the whole schema, and Hypothesis over addresses: whatever is sent, no answer is a 5xx."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import schemathesis
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error

from tests.web.sites import LESSON, make_app

KEYS = ["volume.P", "volume.L", "volume.H", "volume.T", "volume.scope", "volume.unit", "volume.P.from4", "volume", "",
        "what_moves.strategy", "try.eight-gpus", "try.nothing"]
VALUES = ["4", "8", "99", "-1", "NaN", "1e9", "٣", "\x00"]
QUERY_KEYS = st.sampled_from(KEYS) | st.text(max_size=12)
QUERY_VALUES = st.sampled_from(VALUES) | st.integers().map(str) | st.text(max_size=30)
BOUNDED = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
FEW = settings(max_examples=15, deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def documented(tmp_path: Path) -> Iterator[FastAPI]:
    app = make_app(tmp_path, docs=True)
    yield app
    app.state.site.database.close()


def test_no_request_within_the_schema_causes_a_server_error(documented: FastAPI) -> None:
    """Every operation, with bodies and queries that fit the schema and such that do not."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", documented)
    tried = []
    for found in schema.get_all_operations():
        operation = found.ok()
        tried.append(operation.label)
        takes_values = len(list(operation.query)) + len(list(operation.body)) > 0
        modes = [GenerationMode.POSITIVE, *([GenerationMode.NEGATIVE] if takes_values else [])]
        for mode in modes:

            @FEW
            @given(operation.as_strategy(generation_mode=mode))
            def answered(case: schemathesis.Case) -> None:
                case.call_and_validate(checks=[not_a_server_error])

            answered()
    assert len(tried) >= 14


@BOUNDED
@given(st.lists(st.tuples(QUERY_KEYS, QUERY_VALUES), max_size=5))
def test_any_query_of_a_lesson_is_answered_with_200_or_422(web_app: FastAPI, pairs: list[tuple[str, str]]) -> None:
    assert TestClient(web_app).get(LESSON, params=pairs).status_code in (200, 422)


# json.loads makes of half a character what no answer can be encoded with.
TEXTS = st.text(alphabet=st.characters(categories=["Cs", "L", "N", "Cc"]), max_size=60)
ANY_JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.integers(min_value=10**3000, max_value=10**4000) | TEXTS,
                        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=4)
EXPERIMENTS = st.fixed_dictionaries(
    {"strategy": st.sampled_from(["data_parallel", "ring_all_reduce"]) | TEXTS},
    optional={"P": ANY_JSON, "options": ANY_JSON | st.dictionaries(st.just("sync") | TEXTS, ANY_JSON, max_size=2)},
)


@BOUNDED
@given(EXPERIMENTS | st.fixed_dictionaries({"experiments": st.lists(EXPERIMENTS, max_size=2)}) | ANY_JSON)
@example({"strategy": "data_parallel", "P": 10**3999})
@example({"strategy": "data_parallel", "options": {"sync": "\ud800"}})
@example({"strategy": "data_parallel", "options": {"\ud800": 1}})
@example({"strategy": "data_parallel", "options": {"x" * 3000: 1}})
def test_any_json_is_a_run_or_refused_and_comes_back_short(documented: FastAPI, body: object) -> None:
    headers = {"content-type": "application/json"}
    response = TestClient(documented).post("/api/runs", content=json.dumps(body), headers=headers)
    assert response.status_code in (202, 422, 429)
    assert len(response.text) < 2000


NUMBERS = st.from_regex(r"[-+]?[0-9]{1,80}(\.[0-9]{0,40})?(e[-+]?[0-9]{1,2})?( [A-Za-z]{1,9})?", fullmatch=True)


@BOUNDED
@given(st.text(max_size=90) | NUMBERS, st.integers(), st.text(max_size=70), st.booleans())
def test_any_answer_is_graded_or_refused(web_app: FastAPI, answer: str, variant: int, submission: str, htmx: bool) -> None:
    form = {"answer": answer, "variant": str(variant), "submission": submission}
    headers = {"HX-Request": "true"} if htmx else {}
    client = TestClient(web_app, follow_redirects=False)
    for question in ("eight-gpus", "break-even"):
        assert client.post(f"{LESSON}/checkpoints/{question}", data=form, headers=headers).status_code in (200, 303, 422)


@BOUNDED
@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="/."), max_size=30))
def test_any_slug_is_found_or_not_found(web_app: FastAPI, slug: str) -> None:
    assert TestClient(web_app).get(f"/lessons/{quote(slug)}").status_code in (200, 404)
