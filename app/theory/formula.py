"""What a formula is: a function with its LaTeX, symbols, scope, assumptions and sources, and how it is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Number = Fraction | int | float

SCOPES = ("sent by each GPU", "sent by all GPUs together", "held by each GPU", "time", "")


@dataclass(frozen=True)
class Symbol:
    """An argument of a formula: the name it has in code, how it is written, what it means and in which unit."""

    name: str
    latex: str
    meaning: str
    unit: str


@dataclass(frozen=True)
class Source:
    """Where a formula can be read: the paper and its section, or the file of a project."""

    text: str
    url: str


@dataclass(frozen=True)
class Formula:
    """One formula as a card shows it. `symbols` are the function's parameters, in order; `scope` is one of SCOPES.

    `title` names the result, `unit` is the result's unit, `assumptions` say when it holds and `breaks` what happens
    when one of them does not. In both, symbols stand between dollar signs, as LaTeX that `plain_text` can read as well.
    """

    name: str
    title: str
    latex: str
    symbols: tuple[Symbol, ...]
    unit: str
    scope: str
    assumptions: tuple[str, ...]
    breaks: str
    sources: tuple[Source, ...]
    function: Callable[..., Number]

    def evaluate(self, given: Mapping[str, Any]) -> Number:
        """The function's value. Raises ValueError naming a missing, unknown or out-of-range argument."""
        wanted = [symbol.name for symbol in self.symbols]
        takes = f"{self.name} takes {', '.join(wanted)}" if wanted else f"{self.name} takes no arguments"
        for name in given:
            if name not in wanted:
                raise ValueError(f"{name} = {given[name]}: not an argument; {takes}")
        for symbol in self.symbols:
            if symbol.name not in given:
                raise ValueError(f"{symbol.name} is missing ({symbol.meaning}); {takes}")
        return self.function(**given)


def plain_text(marked: str) -> str:
    """A sentence of a card for where LaTeX is not set: `$\\alpha + n / B$` becomes alpha + n / B."""
    return marked.replace("$", "").replace("\\log_2 P", "log2(P)").replace("\\ge", ">=").replace("\\", "")


def read_argument(text: str) -> Number | str:
    """A value typed at a prompt: a whole number (underscores allowed), a fraction, a decimal number, else the word itself."""
    for read in (int, Fraction if "/" in text else float):
        try:
            return read(text)
        except (ValueError, ZeroDivisionError):
            continue
    return text
