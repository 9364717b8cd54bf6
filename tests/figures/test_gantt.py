"""Timelines: blocks lie where their times say, none is lost, and overlaps are counted once."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.figures import gantt

times = st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda pair: (float(min(pair)), float(max(pair))))
layouts = pytest.mark.parametrize("layout", [gantt.WIDE, gantt.NARROW])


@layouts
def test_blocks_begin_and_end_where_their_times_lie(layout: gantt.Layout) -> None:
    spans = (gantt.Span(0, 0, 4, "forward", "a", "F"), gantt.Span(1, 4, 10, "sent", "b"))
    chart = gantt.chart(spans, ("compute", "network"), 10, layout, (0, 5, 10))
    first, second = chart.blocks
    assert first.x == layout.left + 1
    assert second.x == pytest.approx(gantt.scale_of(10, layout)(4))
    assert second.x + second.width <= layout.width
    assert [tick.text for tick in chart.ticks] == ["0", "5", "10"]
    assert second.y - first.y == layout.pitch
    assert chart.height > second.y + gantt.BLOCK


def test_a_letter_stands_only_where_it_has_room() -> None:
    spans = (gantt.Span(0, 0, 50, "forward", "long", "F"), gantt.Span(0, 50, 51, "forward", "short", "F"))
    assert [block.letter for block in gantt.chart(spans, ("compute",), 100, gantt.NARROW).blocks] == ["F", ""]


def test_the_shortest_span_is_still_seen() -> None:
    block = gantt.chart((gantt.Span(0, 0, 0.001, "sent", "tiny"),), ("network",), 100, gantt.WIDE).blocks[0]
    assert block.width == gantt.HAIR


@given(st.lists(times, max_size=8))
def test_joined_times_are_in_order_and_apart(spans: list[tuple[float, float]]) -> None:
    merged = gantt.joined(spans)
    assert all(before[1] < after[0] for before, after in pairwise(merged))
    instants = [moment + 0.5 for moment in range(50)]
    assert [any(start <= at <= end for start, end in spans) for at in instants] == [
        any(start <= at <= end for start, end in merged) for at in instants]


@given(st.lists(times, max_size=6), st.lists(times, max_size=6))
def test_what_laps_is_counted_once_however_many_go_on(
    first: list[tuple[float, float]], second: list[tuple[float, float]]
) -> None:
    both = sum(
        any(start <= at <= end for start, end in first) and any(start <= at <= end for start, end in second)
        for at in (moment + 0.5 for moment in range(50))
    )
    assert gantt.lapped(first, second) == both
