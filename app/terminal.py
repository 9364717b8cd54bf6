"""What commands print: tables, numbers with thousands, and a progress line where somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from typing import TextIO


def grouped(value: Fraction | int | float) -> str:
    """A number with thousands; a fraction to two places, never rounded to a whole number that it is not."""
    if isinstance(value, float):
        return f"{value:,.6g}"
    fraction = Fraction(value)
    return f"{fraction.numerator:,}" if fraction.denominator == 1 else f"{float(fraction):,.2f}"


def table(rows: Sequence[Sequence[str]], headings: Sequence[str] = (), numeric: bool = True) -> str:
    """Columns as wide as they need to be: the first to the left, the others to the right where they hold numbers."""
    lines = [list(headings), *rows] if headings else [list(row) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]

    def cell(text: str, column: int) -> str:
        return text.rjust(widths[column]) if numeric and column else text.ljust(widths[column])

    return "\n".join("  ".join(cell(text, column) for column, text in enumerate(line)).rstrip() for line in lines)


class Progress:
    """One line on a terminal that is written over; nothing where output goes to a file or a pipe."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._shown = stream.isatty()

    def show(self, text: str) -> None:
        if self._shown:
            self._stream.write(f"\r\x1b[2K{text}")
            self._stream.flush()

    def clear(self) -> None:
        self.show("")
