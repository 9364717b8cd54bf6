"""Numbers typed by hand in lesson text: where they are found, and where they may stand."""

from __future__ import annotations

import re
from collections.abc import Iterator

REMEDY = "Compute it with {= formula =}, name a given as {P}, or write {!%s} if it is meant as typed."

_WORD = re.compile(r"\w+(?:[.,]\w+)*")
_SCHEDULE = re.compile(r"[0-9]+[A-Z]+[0-9]+[A-Z]+")  # 1F1B is a name
_NUMBER_IN_MATH = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_STRUCTURE = frozenset({"0", "1", "2"})  # the 2 of 2(P-1)/P and the 1 of L-1 belong to the formula


def typed_numerals(text: str) -> Iterator[str]:
    """Words of prose that begin with a digit. `fp32` and `1F1B` are names; `8`, `1,000`, `7B` and `³` are numbers."""
    for match in _WORD.finditer(text):
        word = match[0]
        if (word[0].isdigit() or word[0].isdecimal() or word[0] in "½¼¾⅓⅔") and not _SCHEDULE.fullmatch(word):
            yield word


def typed_numerals_in_math(latex: str) -> Iterator[str]:
    """Numbers in LaTeX that are no part of a formula's structure, and so ought to be computed."""
    for match in _NUMBER_IN_MATH.finditer(latex):
        if match[0] not in _STRUCTURE:
            yield match[0]
