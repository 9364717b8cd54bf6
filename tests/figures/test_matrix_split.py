"""Matrix split: every weight has one owner, sums stand where a run has all-reduces, and the table counts the squares."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.figures import FIGURES
from app.figures.engine import figure_state
from app.figures.matrix_split import MatrixSplitView, shares
from app.figures.matrix_split_drawing import FIRST, HELD, LEFT_OVER, SECOND, SENT, ZERO, Drawing
from app.theory import predict, tensor_parallel
from kernels.spec import Experiment, experiment_faults

MATRIX_SPLIT = FIGURES["matrix_split"]
values = st.fixed_dictionaries({
    "P": st.integers(1, 8), "H": st.integers(2, 8), "split": st.sampled_from(["each", "pair"]),
    "direction": st.sampled_from(["forward", "backward"]),
})
STRATEGIES = {"each": "tensor_parallel", "pair": "tensor_megatron"}


def split(**query: Any) -> MatrixSplitView:
    state = figure_state(MATRIX_SPLIT, {name: str(value) for name, value in query.items()})
    assert not state.errors
    assert isinstance(state.view, MatrixSplitView)
    return state.view


def drawn(drawing: Drawing, kind: str) -> int:
    """Squares of one class in the rows of a drawing."""
    return sum(path.count("M") for row in drawing.rows for name, path in row.shapes if name == kind)


@pytest.mark.parametrize(("query", "sent"), [
    ({}, "2 × 6 = 12 elements"), ({"direction": "backward"}, "2 × 6 = 12 elements"),
    ({"split": "pair"}, "6 elements"), ({"split": "pair", "direction": "backward"}, "6 elements"),
    ({"P": 1}, "0 elements"), ({"P": 8}, "2 × 6 = 12 elements"), ({"P": 2, "H": 8, "split": "pair"}, "8 elements"),
])
def test_the_finding_names_what_each_gpu_sends(query: dict[str, Any], sent: str) -> None:
    assert split(**query).finding[1] == sent


def test_a_step_costs_24_in_each_layer_and_12_in_pairs() -> None:
    assert "4 all-reduces: 24 elements" in split().note
    assert "2 all-reduces: 12 elements" in split(split="pair").note


def test_a_pair_adds_up_y_forward_and_dx_backward() -> None:
    assert list(split(split="pair").content.sums) == [4]
    assert list(split(split="pair", direction="backward").content.sums) == [0]


def test_three_gpus_cannot_share_four_rows_and_the_leftover_belongs_to_nobody() -> None:
    view = split(P=3)
    assert view.finding[0] == "3 GPUs cannot share 4 rows equally: "
    assert "for P = 1, 2, 4" in view.note
    assert drawn(view.wide, LEFT_OVER) == 3 * 2 * 4
    assert not view.sums


def test_gpus_without_a_column_idle() -> None:
    view = split(P=6)
    assert [row.idle for row in view.wide.rows] == [False] * 4 + [True] * 2
    assert view.table[5].cells == ("none, idle", "none, idle", "0")


def test_the_zeros_that_travel_are_drawn_and_counted() -> None:
    view = split(direction="backward")
    assert drawn(view.wide, ZERO) == 2 * 4 * 3
    assert view.table[0].cells[2] == "8, 6 of them zeros"


@given(values)
@settings(deadline=None)
def test_it_draws_a_split_exactly_where_a_run_is_allowed(query: dict[str, Any]) -> None:
    view = split(**query)
    refused = experiment_faults(query["P"], Experiment(STRATEGIES[query["split"]], H=query["H"]))
    assert bool(refused) == (view.finding[1].endswith("left over"))


@given(values)
@settings(deadline=None)
def test_where_it_runs_every_weight_has_exactly_one_owner(query: dict[str, Any]) -> None:
    view, H = split(**query), query["H"]
    active = tensor_parallel.active_gpus(query["P"], H)
    if H % active:
        return
    working = [parts for parts in view.content.parts if parts]
    assert len(working) == active
    for place in (FIRST, SECOND):
        assert sum(parts[place].count(HELD) for parts in working) == H * H
    assert sorted(index for share in shares(query["P"], H) for index in range(share.start, share.stop)) == list(range(H))


@given(values)
@settings(deadline=None)
def test_both_directions_together_are_what_the_strategy_sends(query: dict[str, Any]) -> None:
    """As many sums in the drawing as the theory has all-reduces of H numbers in a step of two layers."""
    both = [split(**{**query, "direction": direction}) for direction in ("forward", "backward")]
    if query["H"] % tensor_parallel.active_gpus(query["P"], query["H"]):
        return
    expected = predict(STRATEGIES[query["split"]], P=query["P"], H=query["H"]).exact.total
    active = tensor_parallel.active_gpus(query["P"], query["H"])
    once = 2 * (active - 1) * query["H"]
    assert sum(view.sums for view in both) * once == expected


@given(values)
@settings(deadline=None)
def test_the_table_counts_what_is_drawn(query: dict[str, Any]) -> None:
    view = split(**query)
    weights = sum(int(cell.split(",")[0]) for row in view.table for cell in row.cells[:2] if cell[0].isdigit())
    put = sum(int(row.cells[2].split(",")[0]) for row in view.table)
    zeros = sum(int(found) for row in view.table for found in re.findall(r"(\d+) of them", row.cells[2]))
    for drawing in (view.wide, view.narrow):
        assert drawn(drawing, SENT) == put - zeros
        assert drawn(drawing, ZERO) == zeros
        matrices = sum(parts[place].count(HELD) for parts in view.content.parts if parts for place in (FIRST, SECOND))
        assert matrices == weights <= drawn(drawing, HELD)


@given(values)
@settings(deadline=None)
def test_everything_lies_inside_the_drawing(query: dict[str, Any]) -> None:
    view = split(**query)
    for drawing in (view.wide, view.narrow):
        for text in (*drawing.heads, *drawing.signs, *drawing.notes, *(row.name for row in drawing.rows)):
            half = 3.4 * len(text.text) if text.anchor == "middle" else 0
            assert -1 <= text.x - half <= text.x + half <= drawing.width + 1, text
            assert 0 < text.y <= drawing.height


@settings(max_examples=100, deadline=None)
@given(values)
def test_heads_keep_apart(at: dict[str, Any]) -> None:
    view = split(**at)
    for drawing, character in ((view.wide, 6.9), (view.narrow, 6.6)):
        for line in {head.y for head in drawing.heads}:
            heads = [head for head in drawing.heads if head.y == line]
            for left, right in pairwise(heads):
                assert right.x - left.x >= character * (len(left.text) + len(right.text)) / 2 + 4
