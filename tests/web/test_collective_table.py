"""Six collectives in two ways, as one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.course import figure_fields
from app.course.load import load_course
from app.runs.results import compare, result_json
from app.web.collective_table import collective_table
from kernels.spec import COLLECTIVES, IMPLEMENTATIONS, Experiment, RunSpec
from tests.web.runs_made_up import as_predicted

ROOT = Path(__file__).parents[2]


def reports(P: int, elements: int = 32, collectives: tuple[str, ...] = COLLECTIVES) -> list[dict[str, Any]]:
    """Each in both ways, with exactly what was predicted on the sockets."""
    experiments = tuple(
        Experiment("ring_all_reduce", options={"collective": collective, "implementation": way, "elements": elements})
        for collective in collectives for way in IMPLEMENTATIONS)
    return [result_json(one) for one in compare(as_predicted(RunSpec(P, experiments)))]


def test_a_row_holds_the_formula_and_both_ways() -> None:
    table = collective_table(reports(4))
    assert table is not None
    rows = {row.title: row for row in table.rows}
    assert len(rows) == 6
    scatter = rows["Reduce-scatter"]
    assert scatter.by_hand is not None
    assert scatter.library is not None
    assert (scatter.formula, scatter.by_hand.measured, scatter.library.measured) == ("384 B", "384 B", "768 B")
    assert (scatter.by_hand.apart, scatter.library.apart) == (False, True)
    assert scatter.by_hand.by_rank == "96, 96, 96, 96"
    assert scatter.causes == "Reduce-scatter as all-reduce"
    assert [cause.name for cause in table.causes] == ["Reduce-scatter as all-reduce"]


def test_only_what_changes_the_total_is_a_cause() -> None:
    """Chunks are uneven at P = 3, and gloo pads an all-gather; unevenness alone moves no total."""
    table = collective_table(reports(3))
    assert table is not None
    causes = {row.title: row.causes for row in table.rows}
    assert causes["All-reduce"] == ""
    assert causes["All-gather"] == "Padding"
    assert all("neven" not in text for text in causes.values())


def test_a_verdict_other_than_equal_stands_in_its_cell() -> None:
    made = reports(4)
    made[3]["verdict"] = "differs"
    table = collective_table(made)
    assert table is not None
    assert [row.library.verdict for row in table.rows if row.library is not None].count("differs") == 1


@pytest.mark.parametrize("other", [
    reports(4, collectives=("all_reduce", "reduce_scatter")),
    [result_json(one) for one in compare(as_predicted(RunSpec(2, (Experiment("ddp"),))))],
    [*reports(2), *reports(2)],
])
def test_a_few_collectives_and_other_strategies_are_shown_in_full(other: list[dict[str, Any]]) -> None:
    assert collective_table(other) is None


def test_the_lesson_ships_all_twelve_counted_to_the_byte() -> None:
    lesson = load_course([ROOT / "lessons"], figure_fields()).lesson("ring-all-reduce")
    assert lesson is not None
    experiment = lesson.find_experiment("six-collectives")
    assert experiment is not None
    found = [experiment.recorded_report(run) for run in experiment.strategies]
    assert [report["verdict"] for report in found if report is not None] == ["equal"] * 12
    assert collective_table([report for report in found if report is not None]) is not None
