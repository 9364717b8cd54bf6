"""Tensor or data: three straight lines that cross at half of H and at H, whatever P and L are."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.figures import FIGURES
from app.figures.engine import figure_state
from app.figures.numbers import plain
from app.figures.tensor_or_data import TensorOrDataView
from app.theory import data_parallel, predict, tensor_parallel

TENSOR_OR_DATA = FIGURES["tensor_or_data"]
values = st.fixed_dictionaries({
    "T": st.integers(1, 128), "P": st.integers(2, 64), "L": st.integers(1, 8).map(lambda half: 2 * half),
    "H": st.integers(1, 32).map(lambda half: 2 * half),
})


def view_of(**query: Any) -> TensorOrDataView:
    state = figure_state(TENSOR_OR_DATA, {name: str(value) for name, value in query.items()})
    assert not state.errors
    assert isinstance(state.view, TensorOrDataView)
    return state.view


def numbers(view: TensorOrDataView) -> list[str]:
    return [way.number for way in view.ways]


@pytest.mark.parametrize(("query", "shown"), [
    ({}, ["48", "24", "12"]), ({"T": 2}, ["48", "48", "24"]), ({"T": 4}, ["48", "96", "48"]),
    ({"P": 8, "H": 8}, ["224", "56", "28"]), ({"P": 3}, ["42.7", "21.3", "10.7"]),
])
def test_the_three_numbers_are_the_formulas(query: dict[str, Any], shown: list[str]) -> None:
    assert numbers(view_of(**query)) == shown


@pytest.mark.parametrize(("T", "strong"), [
    (1, "twice as much"), (2, "exactly as much"), (3, "less than the gradient in pairs"), (4, "exactly as much"),
    (8, "twice as much"),
])
def test_the_finding_changes_at_half_of_h_and_at_h(T: int, strong: str) -> None:
    assert view_of(T=T).finding[1] == strong


def test_a_split_that_cannot_run_is_dotted_and_says_so() -> None:
    view = view_of(P=3)
    assert [bool(line.solid) for line in view.wide.lines] == [True, False, False]
    assert "3 GPUs cannot share 4 rows or columns equally" in view.note
    assert [way.difference for way in view.ways] == ["", "cannot run", "cannot run"]


def test_where_gpus_idle_stands_what_a_run_sends_on_the_others() -> None:
    view = view_of(P=8, T=4)
    assert "keeps 4 of them busy" in view.note
    assert numbers(view) == ["56", "112", "56"]
    assert [way.difference for way in view.ways] == ["", "exactly 96 on 4 of 8 GPUs", "exactly 48 on 4 of 8 GPUs"]
    assert "exactly 96 on 4 of 8 GPUs" in view.status


def test_where_those_gpus_send_different_amounts_their_mean_stands_there() -> None:
    assert [way.difference for way in view_of(P=8, T=3).ways[1:]] == [
        "on average 72 on 4 of 8 GPUs", "on average 36 on 4 of 8 GPUs"]


@given(values)
@settings(deadline=None)
def test_the_crossings_do_not_move_with_p_or_l(query: dict[str, Any]) -> None:
    view, T = view_of(**query), query["T"]
    P, L, H = query["P"], query["L"], query["H"]
    data = data_parallel.volume(P, L, H)
    low, high = tensor_parallel.break_even_tokens(H), tensor_parallel.megatron_break_even_tokens(H)
    each, pair = tensor_parallel.taught_volume(P, L, H, T), tensor_parallel.megatron_volume(P, L, H, T)
    assert ((each > data), (pair > data)) == ((low < T), (high < T))
    assert numbers(view) == [plain(data), plain(each), plain(pair)]
    level = {round(crossing.y, 6) for chart in (view.wide, view.narrow) for crossing in chart.crossings}
    assert len(level) <= 2, "both crossings lie on data parallel's line"


@given(values)
@settings(deadline=None)
def test_points_lie_where_their_values_say(query: dict[str, Any]) -> None:
    view = view_of(**query)
    for chart in (view.wide, view.narrow):
        data, each, pair = ((chart.layout.bottom - spot.y) for spot in chart.spots)
        assert each == pytest.approx(2 * pair)
        ratio = tensor_parallel.data_over_tensor(query["H"], query["T"])
        assert data == pytest.approx(float(ratio) * each)
        for tick in chart.x_ticks:
            assert chart.left - 1 <= tick.at <= chart.right + 1
        assert sum(tick.strong for tick in chart.x_ticks) == 1


@given(values)
@settings(deadline=None)
def test_the_table_has_the_readers_row_with_the_same_numbers(query: dict[str, Any]) -> None:
    view = view_of(**query)
    here = [row for row in view.table if row.here]
    assert [row.T for row in here] == [query["T"]]
    assert list(here[0].cells) == numbers(view)


@given(values)
@settings(deadline=None, max_examples=40)
def test_where_lines_are_solid_they_are_what_a_run_sends(query: dict[str, Any]) -> None:
    view, P = view_of(**query), query["P"]
    if not view.wide.lines[1].solid:
        assert query["H"] % P
        return
    sizes = {name: query[name] for name in ("P", "L", "H", "T")}
    for way, strategy in zip(view.ways, ("data_parallel", "tensor_parallel", "tensor_megatron"), strict=True):
        assert way.number == plain(Fraction(predict(strategy, **sizes).exact.total, P))
