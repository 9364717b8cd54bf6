"""What moves: every square that is drawn stands for one number that theory counts."""

from __future__ import annotations

import re

import pytest

from app.figures import FIGURES
from app.figures.engine import figure_state
from app.figures.gpus import CELL_PITCH, CELLS_TOP
from app.figures.what_moves import Panel
from app.theory import evaluate


def panels() -> dict[str, Panel]:
    view = figure_state(FIGURES["what_moves"], {}).view
    return {panel.strategy.name: panel for panel in view.panels}


def squares(path: str) -> int:
    return path.count("M")


@pytest.mark.parametrize(("strategy", "formula", "given"), [
    ("data_parallel", "data_parallel.volume", {"P": 4, "L": 2, "H": 4}),
    ("tensor_parallel", "tensor_parallel.taught_volume", {"P": 4, "L": 2, "H": 4, "T": 1}),
    ("pipeline_parallel", "pipeline_parallel.exact_volume", {"P": 4, "L": 2, "H": 4, "T": 1, "m": 1}),
])
def test_the_tape_holds_as_many_squares_as_the_formula_counts(strategy: str, formula: str, given: dict[str, int]) -> None:
    panel = panels()[strategy]
    assert sum(squares(send.squares) for send in panel.tape) == evaluate(formula, given)
    assert all(squares(send.squares) == send.count for send in panel.tape)
    assert panel.total == str(evaluate(formula, given))


def test_the_numbers_in_the_middle_are_the_lessons() -> None:
    assert [panel.total for panel in panels().values()] == ["48", "24", "8"]


def test_each_link_carries_what_one_hop_moves() -> None:
    counts = {name: [squares(link.payload) for link in panel.links] for name, panel in panels().items()}
    assert counts == {"data_parallel": [8] * 4, "tensor_parallel": [1] * 4, "pipeline_parallel": [4, 4]}


def test_each_gpu_shows_the_whole_model_as_held_or_absent() -> None:
    for panel in panels().values():
        assert all(squares(gpu.held) + squares(gpu.absent) == 32 for gpu in panel.gpus)
    held = {name: [squares(gpu.held) for gpu in panel.gpus] for name, panel in panels().items()}
    assert held == {"data_parallel": [32] * 4, "tensor_parallel": [8] * 4, "pipeline_parallel": [16, 16, 0, 0]}


def test_tensor_parallel_deals_every_matrix_out_by_rows() -> None:
    """As the lesson's text and its kernel do: a row makes a partial sum of every output."""
    for gpu in panels()["tensor_parallel"].gpus:
        corners = re.findall(r"M([\d.]+) ([\d.]+)", gpu.held)
        assert {float(y) for _, y in corners} == {gpu.y + CELLS_TOP + gpu.rank * CELL_PITCH}
        assert len({x for x, _ in corners}) == 8


def test_gpus_without_a_layer_are_idle() -> None:
    assert [gpu.idle for gpu in panels()["pipeline_parallel"].gpus] == [False, False, True, True]


@pytest.mark.parametrize("strategy", ["data_parallel", "tensor_parallel", "pipeline_parallel"])
def test_the_chosen_strategy_is_marked_and_named(strategy: str) -> None:
    view = figure_state(FIGURES["what_moves"], {"strategy": strategy}).view
    assert [panel.strategy.name for panel in view.panels if panel.chosen] == [strategy]
    assert view.status.startswith(next(panel for panel in view.panels if panel.chosen).strategy.title)
