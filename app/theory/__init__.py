"""The formulas of the course, pure: numbers in, numbers out. Lessons, figures and commands name them by FORMULAS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.theory.cards import CARDS
from app.theory.formula import Formula, Number, Source, Symbol, plain_text
from app.theory.predictions import Prediction, predict
from app.theory.volume import CAUSE_TEXT, Cause, Volume

__all__ = [
    "CAUSE_TEXT", "FORMULAS", "Cause", "Formula", "Number", "Prediction", "Source", "Symbol", "Volume", "evaluate",
    "plain_text", "predict",
]

FORMULAS: dict[str, Formula] = {formula.name: formula for formula in CARDS}


def evaluate(name: str, given: Mapping[str, Any]) -> Number:
    """The value of a formula by name. Raises ValueError naming the formula or argument and what is allowed."""
    if name not in FORMULAS:
        close = [known for known in FORMULAS if known.split(".")[-1] == name.split(".")[-1]] or list(FORMULAS)
        raise ValueError(f"formula = {name}: unknown; choose one of {', '.join(close)}")
    return FORMULAS[name].evaluate(given)
