"""Replicas: 60 and 30, what a mean does to that, and weights that part where nobody averages."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from app.figures import FIGURES
from app.figures.engine import figure_state
from app.figures.replicas import LEARNING_RATE, RECORDED, STEPS, ReplicasView

REPORTS = json.loads(RECORDED.read_text())
TOKENS = (-1, 2, -3, 4)
every_case = pytest.mark.parametrize(("P", "loss", "sync"), list(product((1, 2, 4), ("sum", "mean"), ("averaged", "alone"))))


def replicas(**query: Any) -> ReplicasView:
    state = figure_state(FIGURES["replicas"], {name: str(value) for name, value in query.items()})
    assert not state.errors
    assert isinstance(state.view, ReplicasView)
    return state.view


def train(P: int, loss: str, sync: str) -> list[list[float]]:
    """The weights after each step, stepped one by one: of each replica, then of one process with all tokens."""
    share = len(TOKENS) // P
    shards = [TOKENS[rank * share : (rank + 1) * share] for rank in range(P)] + [TOKENS]
    weights = [1.0] * len(shards)
    courses = [[weight] for weight in weights]
    for _ in range(STEPS):
        gradients = [sum(2 * weight * x * x for x in shard) / (len(shard) if loss == "mean" else 1)
                     for weight, shard in zip(weights, shards, strict=True)]
        if sync == "averaged":
            gradients = [sum(gradients[:-1]) / P] * P + gradients[-1:]
        weights = [weight - float(LEARNING_RATE) * gradient for weight, gradient in zip(weights, gradients, strict=True)]
        for course, weight in zip(courses, weights, strict=True):
            course.append(weight)
    return courses


def test_a_summed_loss_gives_60_in_one_process_and_30_with_ddp_on_two() -> None:
    rows = {row.name: row for row in replicas(P=2).rows}
    assert (rows["one process"].text, rows["every GPU uses"].text) == ("60", "30")
    assert (rows["GPU 0"].text, rows["GPU 1"].text) == ("10", "50")
    assert replicas(P=2).finding.strong == "60 divided by 2"


@pytest.mark.parametrize("P", [2, 4])
def test_a_mean_loss_agrees_with_one_process(P: int) -> None:
    rows = {row.name: row for row in replicas(P=P, loss="mean").rows}
    assert rows["one process"].text == rows["every GPU uses"].text == "15"


@every_case
def test_fills_are_the_recorded_runs_and_end_where_the_outlines_end(P: int, loss: str, sync: str) -> None:
    report = next(one for one in REPORTS if one["spec"]["P"] == P and one["spec"]["options"].get("loss", "sum") == loss)
    assert report["verdict"] == "equal"
    view = replicas(P=P, loss=loss, sync=sync)
    for row in view.rows:
        if row.measured is not None:
            assert row.measured == pytest.approx(row.width)
    shown = {row.name: row for row in view.rows}
    assert float(shown["one process"].value) == report["measured"]["values"]["gradient_of_one_process"]
    averaged = [row for row in view.rows if row.strong]
    assert [float(row.value) for row in averaged] == ([report["measured"]["values"]["gradient_of_ddp"]] if averaged else [])
    assert bool(averaged) is (sync == "averaged")


@every_case
def test_the_curves_and_the_table_are_the_weights_of_a_training_stepped_by_hand(P: int, loss: str, sync: str) -> None:
    view, courses = replicas(P=P, loss=loss, sync=sync), train(P, loss, sync)
    expected = courses if sync == "alone" and P > 1 else [courses[0], courses[-1]]
    assert len(view.heads) == len(expected)
    for step, row in enumerate(view.table):
        assert [float(cell) for cell in row[1:]] == pytest.approx([course[step] for course in expected], abs=6e-5)
    for chart in (view.wide, view.narrow):
        top, bottom = chart.layout.top, chart.layout.bottom
        for line, course in zip(chart.lines, expected, strict=True):
            drawn = [(bottom - y) / (bottom - top) for _, y in line.points]
            assert drawn == pytest.approx(course)


@pytest.mark.parametrize("P", [2, 4])
def test_averaged_replicas_share_one_curve_and_replicas_left_alone_have_one_each(P: int) -> None:
    assert replicas(P=P).heads == ("all replicas", "one process")
    alone = replicas(P=P, sync="alone")
    assert len(alone.heads) == P + 1
    assert len(set(alone.table[1][1:])) == P + 1
