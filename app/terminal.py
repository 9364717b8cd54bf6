"""What commands print: tables, numbers with thousands, and a progress line where somebody watches."""

from __future__ import annotations

import codecs
import io
import shutil
import sys
import textwrap
from collections.abc import Sequence
from fractions import Fraction
from typing import TextIO

LINE = 100  # letters; longer lines of prose are hard to read
NEAREST = str.maketrans({"×": "x", "\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "‘": "'", "’": "'", "“": '"', "”": '"',
                         "′": "'", "…": "...", "\N{NO-BREAK SPACE}": " "})


def speak_any_encoding() -> None:
    """Where a terminal's encoding lacks a sign, the nearest in ASCII is written: x for a multiplication sign."""
    codecs.register_error("nearest", _nearest)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="nearest")


def _nearest(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    written = error.object[error.start:error.end].translate(NEAREST)
    return written.encode("ascii", "backslashreplace").decode(), error.end


def columns() -> int:
    """How wide the terminal is; 0 where output goes elsewhere and nobody has said."""
    return shutil.get_terminal_size((0, 0)).columns


def wrapped(text: str, hanging: str = "") -> str:
    """Prose in lines no longer than the terminal; all but the first begin with `hanging`. Addresses are not cut."""
    width = max(20, min(LINE, columns() or LINE))
    return textwrap.fill(text, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)


def grouped(value: Fraction | int | float) -> str:
    """A number with thousands; a fraction to two places, never rounded to a whole number that it is not."""
    if isinstance(value, float):
        return f"{value:,.6g}"
    fraction = Fraction(value)
    return f"{fraction.numerator:,}" if fraction.denominator == 1 else f"{float(fraction):,.2f}"


def table(rows: Sequence[Sequence[str]], headings: Sequence[str] = (), numeric: bool = True) -> str:
    """Columns as wide as they need to be: the first to the left, the others to the right where they hold numbers.

    In a terminal too narrow for them each row becomes a few lines: its first cell, and under it the others with their headings.
    """
    lines = [list(headings), *rows] if headings else [list(row) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]

    def cell(text: str, column: int) -> str:
        return text.rjust(widths[column]) if numeric and column else text.ljust(widths[column])

    if headings and 0 < columns() < sum(widths) + 2 * (len(widths) - 1):
        return _stacked(rows, headings)
    return "\n".join("  ".join(cell(text, column) for column, text in enumerate(line)).rstrip() for line in lines)


def _stacked(rows: Sequence[Sequence[str]], headings: Sequence[str]) -> str:
    def lines(row: Sequence[str]) -> list[str]:
        named = zip(headings[1:], row[1:], strict=True)
        return [row[0], *(wrapped(f"  {name}: {text}", "    ") for name, text in named if text)]

    return "\n".join([f"{headings[0]}:", *(line for row in rows for line in lines(row))])


class Progress:
    """One line on a terminal that is written over; nothing where output goes to a file or a pipe."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self._shown = stream.isatty()
        self.latest = ""  # what is going on, whether or not anybody watches

    def show(self, text: str) -> None:
        self.latest = text
        self._write(text)

    def clear(self) -> None:
        self._write("")

    def _write(self, text: str) -> None:
        if self._shown:
            self._stream.write(f"\r\x1b[2K{text}")
            self._stream.flush()
