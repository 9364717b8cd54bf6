"""The table of collectives: formulas beside counts that were recorded, and every gap named."""

from __future__ import annotations

from typing import Any

import pytest

from app.figures import FIGURES
from app.figures.collectives import COLLECTIVES, CollectivesView, Row, counted_elements, recording
from app.figures.engine import figure_state
from app.theory import evaluate, predict
from kernels import spec

EVERY = [(P, s) for P in range(2, 9) for s in (32, 1680)]
each = pytest.mark.parametrize(("P", "s"), EVERY)


def drawn(**query: Any) -> CollectivesView:
    state = figure_state(FIGURES["collectives"], {name: str(value) for name, value in query.items()})
    assert not state.errors
    assert isinstance(state.view, CollectivesView)
    return state.view


def rows(view: CollectivesView) -> dict[str, Row]:
    return {row.collective.name: row for row in view.rows}


def test_all_six_collectives_are_there() -> None:
    assert {collective.name for collective in COLLECTIVES} == set(spec.COLLECTIVES)


@each
def test_every_count_was_predicted_in_total_and_rank_by_rank(P: int, s: int) -> None:
    for collective in spec.COLLECTIVES:
        for implementation in spec.IMPLEMENTATIONS:
            options = {"collective": collective, "implementation": implementation, "elements": s}
            exact = predict("ring_all_reduce", P=P, options=options).exact
            sent = counted_elements()[P, s, collective, implementation]
            assert sum(sent) == exact.total
            assert exact.by_rank is None or sent == exact.by_rank


@each
def test_the_formula_written_is_the_number_shown(P: int, s: int) -> None:
    totals = {"2 (P − 1) s": 2 * (P - 1) * s, "(P − 1) s": (P - 1) * s, "s": s}
    for row in drawn(P=P, s=s).rows:
        assert row.formula_total == totals[row.collective.formula]
    shown = rows(drawn(P=P, s=s))
    assert shown["all_reduce"].formula_total == evaluate("collectives.ring_all_reduce_total", {"s": s, "P": P})
    assert shown["all_gather"].formula_total == evaluate("collectives.all_gather_total", {"s": s, "P": P})


@each
def test_a_count_is_marked_where_it_is_not_the_formulas_and_nowhere_else(P: int, s: int) -> None:
    for row in drawn(P=P, s=s).rows:
        for count in row.counts:
            assert bool(count.difference) == bool(count.why) == (count.total != row.formula_total)
            assert count.total == count.predicted
            assert (count.measured_percent > row.predicted_percent) is bool(count.difference)
            assert count.measured_percent <= 76


def test_gloos_reduce_scatter_sends_as_much_as_its_all_reduce() -> None:
    for P, s in EVERY:
        shown = rows(drawn(P=P, s=s))
        padded = evaluate("collectives.padded_length", {"s": s, "P": P})
        assert shown["reduce_scatter"].counts[1].total == evaluate("collectives.ring_all_reduce_total", {"s": padded, "P": P})
        if s % P == 0:
            assert shown["reduce_scatter"].counts[1].total == shown["all_reduce"].counts[1].total
    view = drawn(P=4, s=32)
    assert rows(view)["reduce_scatter"].counts[1].difference == "twice the formula"
    assert "".join(view.finding) == (
        "Asked for a reduce-scatter, gloo sends 192 numbers where the formula says 96: as many as an all-reduce.")


def test_where_p_does_not_divide_the_finding_says_what_was_filled_up() -> None:
    assert "of the 33 numbers that it fills the buffer up to" in "".join(drawn(P=3, s=32).finding)


def test_by_hand_nothing_is_ever_added() -> None:
    assert not any(row.counts[0].difference for P, s in EVERY for row in drawn(P=P, s=s).rows)


def test_the_recording_names_its_machine() -> None:
    environment = recording()["environment"]
    assert environment["backend"] == "gloo"
    assert str(environment["torch"]) in drawn().recorded
