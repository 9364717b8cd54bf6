"""LaTeX to MathML: the one function around math-core."""

from __future__ import annotations

import re
from functools import lru_cache

from math_core import LatexError, LatexToMathML

_CONVERTER = LatexToMathML()
_COLOUR_CODE = re.compile(r"\x1b\[[0-9;]*m")
_POSITION = re.compile(r"input:(\d+):(\d+)")


class MathFault(ValueError):
    """LaTeX that cannot be set: what is wrong, and where it is, counted from 1 within the formula."""

    def __init__(self, problem: str, line: int, column: int) -> None:
        super().__init__(f"{problem} (line {line}, column {column} of the formula)")
        self.problem = problem
        self.line = line
        self.column = column


@lru_cache(maxsize=4096)
def mathml(latex: str, display: bool) -> str:
    """The formula as a <math> element. Raises MathFault with the position of what cannot be read."""
    try:
        return str(_CONVERTER.convert_with_local_state(latex, displaystyle=display))
    except LatexError as error:
        raise _fault(_COLOUR_CODE.sub("", str(error))) from None


def _fault(report: str) -> MathFault:
    """math-core draws its message for a terminal; its first line says what, "input:line:column" says where."""
    first = next(line for line in report.splitlines() if line.strip())
    position = _POSITION.search(report)
    line, column = (int(number) for number in position.groups()) if position else (1, 1)
    return MathFault(first.removeprefix("Error:").strip(), line, column)
