"""Transformer layer: the collectives that are drawn are those that the formulas count."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.figures import FIGURES
from app.figures.engine import figure_state
from app.figures.transformer_layer import TransformerLayerView, operations
from app.figures.transformer_layer_drawing import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, SHORT
from app.theory import tensor_parallel

LAYER = FIGURES["transformer_layer"]
values = st.fixed_dictionaries({
    "b": st.integers(1, 8), "s": st.integers(1, 16).map(lambda times: 512 * times),
    "H": st.integers(1, 16).map(lambda times: 1024 * times), "t": st.integers(1, 16),
    "activations": st.sampled_from(["replicated", "sequence"]), "recompute": st.sampled_from(["none", "full"]),
    "unit": st.sampled_from(["elements", "bf16"]),
})


def layer(**query: Any) -> TransformerLayerView:
    state = figure_state(LAYER, {name: str(value) for name, value in query.items()})
    assert not state.errors
    assert isinstance(state.view, TransformerLayerView)
    return state.view


@pytest.mark.parametrize(("query", "amount"), [
    ({}, "176,160,768 elements"), ({"activations": "sequence"}, "176,160,768 elements"),
    ({"recompute": "full"}, "264,241,152 elements"), ({"unit": "bf16"}, "352,321,536 bytes"), ({"t": 1}, "0 elements"),
])
def test_gpt_3_sends_what_the_papers_formula_gives(query: dict[str, Any], amount: str) -> None:
    assert layer(**query).finding[1] == amount


def test_four_all_reduces_and_six_with_full_recomputation() -> None:
    assert len(operations(sequence=False, full=False)) == tensor_parallel.all_reduces_per_layer()
    assert len(operations(sequence=False, full=True)) == tensor_parallel.all_reduces_with_recompute()


def test_own_tokens_take_four_gathers_and_four_scatters() -> None:
    kinds = [operation.kind for operation in operations(sequence=True, full=False)]
    assert (kinds.count(ALL_GATHER), kinds.count(REDUCE_SCATTER)) == (4, 4)


def test_forward_combines_at_g_and_backward_at_f() -> None:
    found = {(one.name, one.place) for one in operations(sequence=False, full=False)}
    assert found == {("forward", "g"), ("backward", "f")}


@pytest.mark.parametrize(("query", "why"), [
    ({"t": 5}, "5 GPUs cannot share 96 attention heads equally, so "),
    ({"t": 3, "activations": "sequence"}, "3 GPUs cannot share 2,048 tokens equally, so "),
    ({"H": 1024, "t": 16}, "16 GPUs cannot share 8 attention heads equally, so "),
])
def test_a_group_that_does_not_divide_heads_or_tokens_is_refused(query: dict[str, Any], why: str) -> None:
    view = layer(**query)
    assert view.finding[0] == why
    assert not view.runs
    assert not view.wide.marks


@given(values)
@settings(deadline=None)
def test_the_sum_is_the_formulas(query: dict[str, Any]) -> None:
    view, given_ = layer(**query), (query["b"] * query["s"], query["H"], query["t"])
    plain = tensor_parallel.transformer_layer_volume(*given_)
    assert plain == tensor_parallel.sequence_parallel_layer_volume(*given_)
    expected = tensor_parallel.transformer_layer_recompute_volume(*given_) if query["recompute"] == "full" else plain
    assert view.total == expected == sum(row.elements for row in view.rows)


@given(values)
@settings(deadline=None)
def test_every_collective_is_drawn_once_in_each_drawing_and_as_wide_as_it_is_costly(query: dict[str, Any]) -> None:
    view = layer(**query)
    for drawing in (view.wide, view.narrow):
        assert sorted(mark.label.text for mark in drawing.marks) == sorted(SHORT[one.kind] for one in view.operations)
        assert len(drawing.lanes) == 2 * len(view.rows)
        for mark in drawing.marks:
            assert mark.width == (20 if mark.label.text == SHORT[ALL_REDUCE] else 10)
            assert 0 <= mark.x - 34 <= mark.x + 34 <= drawing.width + 34
            assert mark.label.y < drawing.height
