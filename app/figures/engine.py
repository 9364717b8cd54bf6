"""A query becomes a figure's state: inputs, what was computed from them, and messages beside fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from app.figures.inputs import Control, Field, Inputs, Query, Reading, Value, parse

KEPT_VIEWS = 256


class View(Protocol):
    """What a drawing is made of. `status` says the numbers in one line, for those who hear the page."""

    @property
    def status(self) -> str: ...


@dataclass(frozen=True)
class Figure:
    """One interactive figure: its controls and the pure function behind them.

    `live` figures are drawn anew by the server at every step; the others hold all their states in the page.
    The templates are `figures/_<name>.html` (the drawing) and `figures/_<name>_controls.html`.
    """

    name: str
    title: str
    fields: tuple[Control, ...]
    compute: Callable[[Inputs], View]
    live: bool = True

    @property
    def field_names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)


@dataclass(frozen=True)
class FigureState:
    """A figure at some values. With errors, inputs and view are the last good ones, as far as the query tells them."""

    figure: Figure
    inputs: Inputs
    view: View
    errors: Mapping[str, str]


def figure_state(
    figure: Figure, query: Query, prefix: str = "", defaults: Mapping[str, Value] | None = None
) -> FigureState:
    """The figure that a query asks for, computed."""
    reading = read_query(figure, query, prefix, defaults)
    return FigureState(figure, reading.inputs, view(figure, reading.inputs), reading.errors)


def read_query(
    figure: Figure, query: Query, prefix: str = "", defaults: Mapping[str, Value] | None = None
) -> Reading:
    """What a query says about a figure, before anything is computed.

    With a prefix ("volume." on a lesson's page) only keys that carry it are read. Without one (the figure's own address)
    plain names are, and those that carry the figure's own name: the form is the same in both places. Keys of other
    figures are nobody's error. `defaults` are a lesson's own starting values.
    """
    return parse(figure.fields, tuple(_own_pairs(figure, query, prefix)), defaults)


def start_values(figure: Figure, params: Mapping[str, str]) -> dict[str, Value]:
    """A lesson's starting values for a figure. Raises ValueError where a name or value is not one of the figure's."""
    reading = parse(figure.fields, params)
    if reading.errors:
        raise ValueError(" ".join(reading.errors.values()))
    return {name: value for name, value in reading.inputs.values if name in params}


def query_pairs(figure: Figure, inputs: Inputs) -> tuple[tuple[str, str], ...]:
    """The figure's state as a lesson's query names it: (volume.P, 4), ..."""
    return tuple((f"{figure.name}.{name}", str(value)) for name, value in inputs.values)


@lru_cache(maxsize=KEPT_VIEWS)
def view(figure: Figure, inputs: Inputs) -> View:
    """What the figure computes, kept for the next reader with the same values."""
    return figure.compute(inputs)


def _own_pairs(figure: Figure, query: Query, prefix: str) -> Iterable[tuple[str, str]]:
    pairs = query.items() if isinstance(query, Mapping) else query
    own_prefix = prefix or f"{figure.name}."
    for key, value in pairs:
        if key.startswith(own_prefix):
            yield key.removeprefix(own_prefix), value
        elif not prefix and _is_plain(figure, key):
            yield key, value


def _is_plain(figure: Figure, key: str) -> bool:
    """Whether a key belongs to no other figure: no dot, or a slider's name such as P.from4."""
    head, dot, _ = key.partition(".")
    return not dot or head in {control.name for control in figure.fields if isinstance(control, Field)}
