"""Geometry: lines go through their points and nowhere else, ticks are few and round, labels keep their distance."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.figures import svg

heights = st.lists(st.floats(0, 300), min_size=1, max_size=8)


def test_a_doubling_takes_the_same_length_everywhere() -> None:
    scale = svg.Doubling(64, 0, 600)
    assert [scale(value) for value in scale.ticks()] == [0, 100, 200, 300, 400, 500, 600]


@pytest.mark.parametrize(("top", "ticks"), [
    (64, (0, 16, 32, 48, 64)), (2, (0, 0.5, 1, 1.5, 2)), (524_288, (0, 131_072, 262_144, 393_216, 524_288)),
    (40_000, (0, 10_000, 20_000, 30_000, 40_000)), (300, (0, 75, 150, 225, 300)),
])
def test_ticks_end_at_a_top_that_can_be_quartered(top: float, ticks: tuple[float, ...]) -> None:
    assert svg.nice_ticks(top) == ticks


@given(st.floats(1, 1e9))
def test_ticks_are_few_even_and_never_above_the_top(top: float) -> None:
    ticks = svg.nice_ticks(top)
    assert 3 <= len(ticks) <= 7
    assert ticks[0] == 0
    assert ticks[-1] <= top * (1 + 1e-9)


@given(st.floats(1, 1e9))
def test_a_number_is_rounded_up_by_less_than_half(value: float) -> None:
    assert value * (1 - 1e-9) <= svg.round_up(value) <= 1.51 * value


@given(st.lists(st.floats(0, 300), min_size=3, max_size=12))
def test_a_smooth_line_ends_each_piece_at_a_point_and_keeps_its_handles_between_the_neighbours(ys: list[float]) -> None:
    points = [(10.0 * index, y) for index, y in enumerate(ys)]
    curve = svg.smooth(points)
    for ((_, before), (x, after)), piece in zip(pairwise(points), curve.pieces, strict=True):
        if piece.startswith("H"):
            assert before == after
            continue
        handles = [float(value) for value in piece[1:].split(" ")]
        assert handles[4:] == pytest.approx((x, after), abs=0.06)
        for height in handles[1:4:2]:
            assert min(before, after) - 0.06 <= height <= max(before, after) + 0.06


def test_chosen_pieces_are_joined_where_they_meet() -> None:
    curve = svg.smooth([(0, 0), (1, 5), (2, 5), (3, 9)])
    assert curve.path_of([0, 1]).count("M") == 1
    assert curve.path_of([0, 2]).count("M") == 2
    assert curve.path_of([]) == ""


@given(heights)
def test_labels_stand_apart_in_order_and_inside(wanted: list[float]) -> None:
    placed = svg.spread(wanted, 17, 10, 290)
    assert len(placed) == len(wanted)
    assert all(9.99 <= height <= 290.01 for height in placed)
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    assert all(placed[low] - placed[high] >= 16.99 for high, low in pairwise(order))


@given(st.lists(st.floats(20, 280), min_size=1, max_size=3))
def test_labels_that_do_not_collide_stay_where_they_belong(wanted: list[float]) -> None:
    alone = all(abs(one - other) >= 17 for index, one in enumerate(wanted) for other in wanted[:index])
    if alone:
        assert svg.spread(wanted, 17, 10, 290) == tuple(wanted)


@pytest.mark.parametrize(("box", "clear"), [
    (svg.Box(0, 0, 10, 10), True), (svg.Box(40, 40, 60, 60), False), (svg.Box(40, 70, 60, 90), True),
    (svg.Box(110, 0, 120, 200), True),
])
def test_a_box_is_clear_of_a_line_that_does_not_pass_through_it(box: svg.Box, clear: bool) -> None:
    assert box.clear_of([(20, 20), (100, 100)]) is clear


@pytest.mark.parametrize("count", [0, 1, 8, 33])
def test_as_many_squares_are_drawn_as_were_counted(count: int) -> None:
    assert svg.squares(count, 0, 0, 4).count("M") == count
