"""Figures printed in papers come out of our formulas."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from app.theory import FORMULAS
from app.theory.published import ANSWERS, DIFFERS_FROM_PRINT, Answer, check
from tests.theory.golden import covered_rows

ROWS = covered_rows()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_our_formula_meets_the_published_figure(row: dict[str, Any]) -> None:
    found = check(row)
    assert found.agrees, f"{found.formula} gives {found.ours}, the table says {found.expected} {found.unit}"


def test_every_row_of_the_covered_topics_has_an_answer_and_no_answer_is_without_a_row() -> None:
    assert {row["id"] for row in ROWS} == set(ANSWERS)


def test_every_answer_names_a_formula_and_all_of_its_arguments() -> None:
    for row in ROWS:
        answer = ANSWERS[row["id"]]
        wanted = {symbol.name for symbol in FORMULAS[answer.formula].symbols}
        assert set(answer.given(row["inputs"])) == wanted, row["id"]


def test_every_row_input_is_used_unless_our_formula_does_not_depend_on_it() -> None:
    """H / (2 T) is the ratio of two volumes in which P and L cancel."""
    unused = {row["id"]: sorted(set(row["inputs"]) - _used(ANSWERS[row["id"]])) for row in ROWS}
    assert {row_id: names for row_id, names in unused.items() if names} == {"seed-totals-ratio-data-tensor": ["L", "P"]}


def _used(answer: Answer) -> set[str]:
    used: set[str] = set()
    for keys in answer.arguments.values():
        used |= {keys} if isinstance(keys, str) else set(keys)
    return used


def test_ours_rounds_to_every_printed_figure_but_the_listed_ones() -> None:
    missed = {found.row_id for found in map(check, ROWS) if found.rounds_to_print is False}
    assert missed == set(DIFFERS_FROM_PRINT)


def test_notes_that_print_a_figure_are_read() -> None:
    printed = {found.row_id: found.printed for found in map(check, ROWS) if found.printed is not None}
    assert len(printed) == sum("Source prints" in row["note"] for row in ROWS)
    assert str(printed["neox-tokens"]) == "3.15"


def test_rows_recomputed_or_derived_do_not_count_as_published() -> None:
    kinds = {found.row_id: found.is_published for found in map(check, ROWS)}
    assert not kinds["seed-data-P4-per-gpu"]
    assert not kinds["zero-comm-bytes-ddp-7.5B-N64-fp16"]
    assert kinds["tp-volume-gpt3-layer-bytes"]


def test_a_wrong_formula_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(row for row in ROWS if row["id"] == "seed-data-P4-per-gpu")
    monkeypatch.setitem(ANSWERS, row["id"], Answer("data_parallel.limit", {"L": "L", "H": "H"}))
    found = check(row)
    assert found.ours == 64
    assert not found.holds


def test_results_are_exact_where_the_truth_is_a_fraction() -> None:
    row = next(row for row in ROWS if row["id"] == "ring-allreduce-uneven-mean-s32-P7")
    assert check(row).ours == Fraction(384, 7)


def test_a_row_without_formula_is_refused() -> None:
    with pytest.raises(ValueError, match="id = zero-table-1: no formula answers for it"):
        check({"id": "zero-table-1"})
