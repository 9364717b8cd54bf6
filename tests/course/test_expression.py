"""Values that lesson text names."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given as with_any
from hypothesis import settings
from hypothesis import strategies as st

from app.course.expression import ExpressionFault, Value, formula_expression, in_words, parse_expression, shown_number
from app.theory import FORMULAS

GIVEN: dict[str, Value] = {"P": 4, "L": 2, "H": 4, "T": 1, "m": 1, "many": 8}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("data_parallel.volume", 48),
        ("data_parallel.volume P=8", 56),
        ("data_parallel.volume P=many", 56),
        ("collectives.ring_all_reduce s=data_parallel.params", 48),
        ("data_parallel.volume / pipeline_parallel.busiest_gpu_volume", 12),
        ("data_parallel.volume P=8 - data_parallel.volume", 8),
        ("P + L * H - 2", 10),
        ("H - L - 1", 1),
        ("1 / P", Fraction(1, 4)),
        ("0.1", Fraction(1, 10)),
        ("3/2", Fraction(3, 2)),
        ("-7_000", -7000),
        ("units.bytes elements=data_parallel.volume dtype=bf16", 96),
    ],
)
def test_an_expression_has_the_exact_value(written: str, value: Value) -> None:
    found = parse_expression(written).evaluate(GIVEN)
    assert found == value
    assert isinstance(found, int) == isinstance(value, int)


def test_a_formula_with_arguments_reads_like_the_expression() -> None:
    named = formula_expression("data_parallel.volume", {"P": 8})
    assert named == parse_expression("data_parallel.volume P=8")


NO_VALUE = [
    "", "P L", "P +", "+ P", "P =3", "P=3", "data_parallel.volume P", "data_parallel.volume P=3 P=4", "P ** 2", "nothing",
    "nothing.at_all", "data_parallel.volume P=nothing", "data_parallel.volume =3", "1 / 0", "P / 0",
]


@pytest.mark.parametrize("written", NO_VALUE)
def test_what_has_no_value_is_refused_with_a_remedy(written: str) -> None:
    with pytest.raises(ExpressionFault) as refused:
        parse_expression(written).evaluate(GIVEN)
    assert refused.value.problem
    assert refused.value.remedy


@with_any(st.text(max_size=60))
def test_no_text_makes_an_expression_fail_in_another_way(written: str) -> None:
    try:
        parse_expression(written).evaluate(GIVEN)
    except ExpressionFault:
        return


ARGUMENTS = st.sampled_from(["0", "1", "3", "8", "-1", "3/2", "0.1", "1_000_000_000_000", "9" * 30, "fp32", "P"])


@settings(deadline=None)
@with_any(st.sampled_from(sorted(FORMULAS)), st.data())
def test_no_arguments_make_a_formula_fail_in_another_way(name: str, data: st.DataObject) -> None:
    words = [f"{symbol.name}={data.draw(ARGUMENTS)}" for symbol in FORMULAS[name].symbols]
    try:
        shown_number(parse_expression(" ".join([name, *words])).evaluate(GIVEN))
    except ExpressionFault:
        return


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (48, None, "48"), (48, 1, "48.0"), (Fraction(3, 2), None, "1.5"), (Fraction(3, 2), 0, "2"), (Fraction(5, 2), 0, "3"),
        (Fraction(128, 3), None, "42.67"), (7_000_000_000, None, "7,000,000,000"), (Fraction(1, 16), None, "0.0625"),
        (Fraction(-3, 2), None, "-1.5"), (0.1, None, "0.1"), (1e22, None, "10,000,000,000,000,000,000,000"),
        (10**40, None, f"{10**40:,}"),
        (10**49 + Fraction(1, 3), 9, f"{10**49:,}.333333333"),
    ],
)
def test_a_number_is_shown_as_a_reader_would_write_it(value: Value, digits: int | None, text: str) -> None:
    assert shown_number(value, digits) == text


def test_an_endless_number_is_refused() -> None:
    for value in (float("inf"), float("nan"), 10**60):
        with pytest.raises(ExpressionFault, match="too long to show"):
            shown_number(value)


def test_words_go_to_twenty() -> None:
    assert [in_words(value) for value in (0, 12, Fraction(20))] == ["zero", "twelve", "twenty"]
    for value in (21, -1, Fraction(1, 2)):
        with pytest.raises(ExpressionFault, match="no word"):
            in_words(value)
