"""Accumulation: one sync costs what it costs without, a sync in every micro-step A times as much, and memory stays level."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.figures import FIGURES
from app.figures.accumulation import AccumulationView, Way
from app.figures.engine import figure_state
from app.theory import predict

values = st.fixed_dictionaries({"A": st.integers(1, 16), "P": st.integers(1, 64), "R": st.integers(1, 6)})


def accumulation(**query: Any) -> AccumulationView:
    state = figure_state(FIGURES["accumulation"], {name: str(value) for name, value in query.items()})
    assert not state.errors
    assert isinstance(state.view, AccumulationView)
    return state.view


def number(text: str) -> Fraction:
    return Fraction(text.replace(",", ""))


def kinds(way: Way, kind: str) -> int:
    return sum(span.kind == kind for span in way.spans)


@pytest.mark.parametrize(("query", "numbers"), [
    ({}, ["48", "192"]), ({"A": 1}, ["48", "48"]), ({"A": 16}, ["48", "768"]), ({"P": 8}, ["56", "224"]),
    ({"P": 1}, ["0", "0"]),
])
def test_the_two_numbers_are_those_of_the_formulas(query: dict[str, int], numbers: list[str]) -> None:
    assert [way.number for way in accumulation(**query).ways] == numbers


@settings(max_examples=60, deadline=None)
@given(values)
def test_the_numbers_are_what_a_run_is_predicted_to_send(at: dict[str, int]) -> None:
    for way, when in zip(accumulation(**at).ways, ("once", "every_micro_step"), strict=True):
        exact = predict("ddp", P=at["P"], options={"accumulation": at["A"], "sync_when": when}).exact
        assert abs(number(way.number) - exact.mean) <= Fraction(1, 20)


@settings(max_examples=60, deadline=None)
@given(values)
def test_the_timeline_has_every_pass_and_as_many_all_reduces_as_it_says(at: dict[str, int]) -> None:
    for way, syncs in zip(accumulation(**at).ways, (1, at["A"]) if at["P"] > 1 else (0, 0), strict=True):
        assert (kinds(way, "forward"), kinds(way, "backward"), kinds(way, "update")) == (at["A"], at["A"], 1)
        assert kinds(way, "sent") == syncs
        assert way.all_reduces == (f"{syncs} all-reduce{'' if syncs == 1 else 's'}" if syncs else "no all-reduce")
        assert way.all_reduces in way.description
        assert all(span.end - span.start == at["R"] for span in way.spans if span.kind == "sent")
        assert max(span.end for span in way.spans) == way.ends
        ordered = sorted(way.spans, key=lambda span: span.start)
        assert all(before.end <= after.start for before, after in pairwise(ordered))


@settings(max_examples=60, deadline=None)
@given(values)
def test_the_table_says_what_the_drawing_shows(at: dict[str, int]) -> None:
    view = accumulation(**at)
    for way in view.ways:
        rows = view.table(way)
        for drawing in (way.wide, way.narrow):
            assert len(rows) == len(drawing.chart.blocks)
            scale = (drawing.chart.layout.width - 2 - drawing.chart.layout.left) / max(other.ends for other in view.ways)
            for row, block in zip(rows, drawing.chart.blocks, strict=True):
                assert block.x == pytest.approx(drawing.chart.layout.left + 1 + row.start * scale)
                assert block.x + block.width <= drawing.chart.layout.width


@settings(max_examples=60, deadline=None)
@given(values)
def test_every_hill_of_activations_is_as_high_as_every_other_whatever_a_is(at: dict[str, int]) -> None:
    for way in accumulation(**at).ways:
        heights = [float(y) for y in re.findall(r" ([\d.]+)", way.wide.hills)]
        assert heights.count(min(heights)) == at["A"]
        assert len(set(heights)) == 2


@settings(max_examples=60, deadline=None)
@given(values)
def test_the_finding_is_true_at_all_values(at: dict[str, int]) -> None:
    text = accumulation(**at).finding.text
    if at["P"] == 1:
        assert "nothing" in text
    elif at["A"] == 1:
        assert "both ways send the same" in text
    else:
        words = {2: "twice", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten"}
        assert f"send {words.get(at['A'], str(at['A']))}" in text
