"""LaTeX to MathML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.course.math import MathFault, mathml
from app.theory import FORMULAS


@pytest.mark.parametrize("name", FORMULAS)
def test_every_formula_and_symbol_of_the_index_can_be_set(name: str) -> None:
    formula = FORMULAS[name]
    assert mathml(formula.latex, True).startswith('<math display="block">')
    assert all(mathml(symbol.latex, False).startswith("<math>") for symbol in formula.symbols)


@pytest.mark.parametrize(
    ("latex", "line", "column", "problem"),
    [
        (r"\frac{2}{", 1, 10, "Expected closing token"),
        ("a +\n\\foo", 2, 1, "Unknown command"),
        ("a_b_c", 1, 4, "Duplicate subscript"),
    ],
)
def test_bad_latex_is_refused_with_its_place_and_without_colour_codes(latex: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(MathFault) as refused:
        mathml(latex, False)
    assert (refused.value.line, refused.value.column) == (line, column)
    assert refused.value.problem.startswith(problem)
    assert "\x1b" not in str(refused.value)


@given(st.text(alphabet=st.sampled_from("\\{}^_&%$#~ab12 <>\"'\n"), max_size=25))
def test_no_latex_fails_in_another_way(latex: str) -> None:
    try:
        mathml(latex, False)
    except MathFault:
        return
