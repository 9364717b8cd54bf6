"""How a card is made from a function: its name and symbols come from the function itself, so they cannot drift apart."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from app.theory.cards.symbols import SYMBOLS
from app.theory.formula import Formula, Number, Source

PER_GPU = "sent by each GPU"
TOGETHER = "sent by all GPUs together"
HELD = "held by each GPU"
TIME = "time"
NO_SCOPE = ""


def card(
    function: Callable[..., Number],
    title: str,
    latex: str,
    *,
    unit: str,
    scope: str,
    assumes: tuple[str, ...],
    breaks: str,
    sources: tuple[Source, ...],
) -> Formula:
    """The card of one function. KeyError where a parameter is not a symbol of the course."""
    module = function.__module__.rsplit(".", 1)[-1]
    symbols = tuple(SYMBOLS[name] for name in inspect.signature(function).parameters)
    return Formula(
        name=f"{module}.{function.__name__}",
        title=title,
        latex=latex,
        symbols=symbols,
        unit=unit,
        scope=scope,
        assumptions=assumes,
        breaks=breaks,
        sources=sources,
        function=function,
    )
