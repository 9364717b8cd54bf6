"""Buckets: the sizes that a public report logged, the rule at any limit, and a strip as long as its table says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.figures import FIGURES
from app.figures.buckets import GAP, MODELS, BucketsView
from app.figures.engine import figure_state
from app.theory import evaluate
from kernels.schedule import MIB

values = st.fixed_dictionaries({
    "first": st.integers(1, 100), "next": st.integers(1, 100), "model": st.sampled_from(["resnet18", "gpt2"]),
})


def buckets(**query: Any) -> BucketsView:
    state = figure_state(FIGURES["buckets"], {name: str(value) for name, value in query.items()})
    assert not state.errors
    assert isinstance(state.view, BucketsView)
    return state.view


def sizes(view: BucketsView) -> list[int]:
    return [row.bytes for row in view.rows]


@pytest.mark.parametrize(("limit", "logged"), [
    (25, [2_052_000, 28_852_224, 15_853_824]), (35, [2_052_000, 38_297_600, 6_408_448]),
])
def test_resnet_18_comes_out_as_the_public_report_logged_it(limit: int, logged: list[int]) -> None:
    view = buckets(next=limit)
    assert sizes(view) == logged
    assert sum(logged) == evaluate("buckets.resnet18_bytes", {}) == 46_758_048
    assert "issue 48880" in view.reported


def test_limits_that_nobody_reported_claim_no_report() -> None:
    assert not buckets(next=24).reported
    assert not buckets(first=2).reported
    assert not buckets(model="gpt2").reported


def test_gpt_2_ends_with_an_embedding_that_no_limit_cuts() -> None:
    last = buckets(model="gpt2").rows[-1]
    assert last.closed_by == "wte.weight"
    assert last.bytes > 50_257 * 768 * 4
    assert sum(sizes(buckets(model="gpt2"))) == 4 * 124_439_808


@settings(max_examples=100, deadline=None)
@given(values)
def test_every_bucket_but_the_last_holds_its_limit_and_would_not_without_its_last_parameter(at: dict[str, Any]) -> None:
    view, model = buckets(**at), {parameter.name: parameter for parameter in MODELS[at["model"]]}
    assert sum(sizes(view)) == sum(parameter.fp32_bytes for parameter in model.values())
    for row in view.rows[:-1]:
        limit = MIB * (at["first"] if row.number == 1 else at["next"])
        assert row.bytes >= limit
        assert row.bytes - model[row.closed_by].fp32_bytes < limit


@settings(max_examples=100, deadline=None)
@given(values)
def test_the_strip_is_as_long_as_the_table_says(at: dict[str, Any]) -> None:
    view = buckets(**at)
    for strip in (view.wide, view.narrow):
        assert [box.number for box in strip.boxes] == [row.number for row in view.rows]
        scale = (strip.width - 2 - GAP * (len(view.rows) - 1)) / sum(sizes(view))
        for box, row in zip(strip.boxes, view.rows, strict=True):
            assert box.width == pytest.approx(row.bytes * scale)
            seams = [float(x) for x in re.findall(r"M([\d.]+)", box.seams)]
            assert all(box.x < seam < box.x + box.width for seam in seams)
            assert box.limit is None or box.x < box.limit < box.x + box.width
        assert strip.boxes[-1].x + strip.boxes[-1].width == pytest.approx(strip.width - 1)


@settings(max_examples=100, deadline=None)
@given(values)
def test_the_finding_counts_the_all_reduces_and_explains_the_fullest(at: dict[str, Any]) -> None:
    view = buckets(**at)
    count = len(view.rows)
    words = ["", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    assert view.finding.strong.startswith(words[count] if count < len(words) else str(count))
    named = re.search(r"Bucket (\d+) holds .* because (\S+) alone", view.finding.text)
    if named:
        assert view.rows[int(named[1]) - 1].closed_by == named[2]


@settings(max_examples=100, deadline=None)
@given(values)
def test_buckets_that_are_not_listed_are_named_and_the_last_one_is_listed(at: dict[str, Any]) -> None:
    view = buckets(**at)
    named = [int(number) for number in re.findall(r"\d+", view.hidden)]
    hidden = set(range(named[0], named[-1] + 1)) if named else set()
    assert hidden | {row.number for row in view.shown_rows} == set(range(1, len(view.rows) + 1))
    assert not hidden & {row.number for row in view.shown_rows}
    assert view.shown_rows[-1] == view.rows[-1]
