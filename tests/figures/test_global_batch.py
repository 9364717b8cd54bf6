"""Global batch: only whole replicas multiply it, every GPU is drawn once, and what does not divide is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.figures import FIGURES
from app.figures.engine import figure_state
from app.figures.global_batch import Drawing, GlobalBatchView
from app.theory import evaluate

values = st.fixed_dictionaries({
    "P": st.integers(1, 64), "t": st.integers(1, 8), "p": st.integers(1, 8), "b": st.integers(1, 16), "A": st.integers(1, 64),
})


def global_batch(**query: Any) -> GlobalBatchView:
    state = figure_state(FIGURES["global_batch"], {name: str(value) for name, value in query.items()})
    assert not state.errors
    assert isinstance(state.view, GlobalBatchView)
    return state.view


def test_sixteen_gpus_of_two_by_two_are_four_replicas_and_128_sequences() -> None:
    view = global_batch()
    assert [factor.number for factor in view.factors] == ["4", "2", "16"]
    assert view.finding.strong == "128 sequences"
    assert "not 512" in view.finding.after


@pytest.mark.parametrize(("query", "strong"), [
    ({"P": 7}, "3 GPUs would belong to no replica"), ({"P": 3}, "Nothing can run"),
    ({"P": 17}, "1 GPU would belong to no replica"),
])
def test_what_does_not_tile_is_refused_and_says_why(query: dict[str, int], strong: str) -> None:
    view = global_batch(**query)
    assert view.finding.strong == strong
    assert view.sign == "+"
    whole, left_over = (int(part.number) for part in view.factors)
    assert (whole, left_over) == divmod(query["P"], 4)
    assert "refused" in view.status


def test_replicas_stand_in_rows_of_sixteen_and_on_a_phone_of_eight() -> None:
    view = global_batch(P=64, t=1, p=1)
    for drawing, row in ((view.wide, 16), (view.narrow, 8)):
        heights = [group.y for group in drawing.groups]
        assert [heights.count(y) for y in sorted(set(heights))] == [row] * (64 // row)


@settings(max_examples=150, deadline=None)
@given(values)
def test_the_product_is_the_formulas(at: dict[str, int]) -> None:
    view = global_batch(**at)
    if at["P"] % (at["t"] * at["p"]):
        with pytest.raises(ValueError, match=r"t \* c \* p"):
            evaluate("batch.global_batch_of_world", {**at, "c": 1})
        return
    total = evaluate("batch.global_batch_of_world", {**at, "c": 1})
    assert view.finding.strong == f"{total:,} sequence{'' if total == 1 else 's'}"
    assert dict(view.table)["Sequences an optimizer step, d × b × A"] == f"{total:,}"
    product = 1
    for factor in view.factors:
        product *= int(factor.number.replace(",", ""))
    assert product == total


@settings(max_examples=150, deadline=None)
@given(values)
def test_every_gpu_is_drawn_once_and_inside(at: dict[str, int]) -> None:
    view = global_batch(**at)
    for drawing in (view.wide, view.narrow):
        assert len(drawing.groups) == view.replicas == int(dict(view.table)["Whole replicas, d = P / (t p)"])
        assert all(group.cells.count("M") == at["t"] * at["p"] for group in drawing.groups)
        assert cells(drawing) == at["P"]
        assert drawing.spare.count("M") == int(dict(view.table)["GPUs left over"])
        assert all(group.x + group.width <= drawing.width for group in drawing.groups)
        assert all(group.y + group.height <= drawing.height for group in drawing.groups)


def cells(drawing: Drawing) -> int:
    return sum(group.cells.count("M") for group in drawing.groups) + drawing.spare.count("M")
