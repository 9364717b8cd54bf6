"""The chart of the figure *tensor or data*: what each GPU sends against the tokens of a step. Geometry only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.figures import svg
from app.figures.numbers import Number, plain

CHARACTER = 6.9  # pixels of an average character at 13 to 14 px
LINE = 18


@dataclass(frozen=True)
class Layout:
    """One of the two drawings; without `end_labels` the lines' names stand on the lines."""

    width: float
    height: float
    top: float
    bottom: float
    end_labels: bool


WIDE = Layout(820, 360, 44, 306, end_labels=True)
NARROW = Layout(350, 360, 44, 306, end_labels=False)


@dataclass(frozen=True)
class Tick:
    at: float
    text: str
    strong: bool = False


@dataclass(frozen=True)
class Label:
    """Text at a place; `marked` puts the axis's mark in front of it."""

    axis: str
    x: float
    y: float
    lines: tuple[str, ...]
    anchor: str
    marked: bool = False


@dataclass(frozen=True)
class Line:
    """A way of cutting: straight, because all three are; dotted where no run can follow."""

    axis: str
    solid: str
    dotted: str
    stops: tuple[svg.Point, ...] = ()


@dataclass(frozen=True)
class Spot:
    """The reader's own point on a line."""

    axis: str
    x: float
    y: float
    hollow: bool


@dataclass(frozen=True)
class Crossing:
    """Where a line meets data parallel's: a dashed way down to the axis."""

    x: float
    y: float


@dataclass(frozen=True)
class Amounts:
    """One way of cutting: elements at 0 tokens, for each further token, and at the reader's own T."""

    name: str
    axis: str
    fixed: Number
    per_token: Number
    here: Number
    runs: bool


@dataclass(frozen=True)
class Chart:
    layout: Layout
    left: float
    right: float
    unit: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    here: float
    here_top: float
    lines: tuple[Line, ...]
    spots: tuple[Spot, ...]
    crossings: tuple[Crossing, ...]
    labels: tuple[Label, ...]


def chart(ways: Sequence[Amounts], crossings: Sequence[Number], T: int, layout: Layout) -> Chart:
    """Lines for all ways, the reader's T, and where lines cross."""
    last = last_tokens(T, max(crossings))
    ends = [way.fixed + last * way.per_token for way in ways]
    top = svg.round_up(max(float(end) for end in ends) or 1)
    ticks = svg.nice_ticks(top)
    left = 18 + CHARACTER * max(len(f"{tick:,.0f}") for tick in ticks)
    names = [f"{way.name} {plain(end)}" for way, end in zip(ways, ends, strict=True)]
    right = layout.width - (40 + CHARACTER * max(map(len, names)) if layout.end_labels else 14)
    x, y = svg.Linear(0, last, left, right), svg.Linear(0, top, layout.bottom, layout.top)
    spots = tuple(Spot(way.axis, x(T), y(float(way.here)), not way.runs) for way in ways)
    level = y(float(ways[0].fixed))
    meets = tuple(Crossing(x(float(tokens)), level) for tokens in crossings)
    return Chart(
        layout=layout, left=left, right=right, unit="elements sent by each GPU", x_ticks=_x_ticks(x, last, T, crossings),
        y_ticks=tuple(Tick(y(tick), f"{tick:,.0f}") for tick in ticks), here=x(T), here_top=min(spot.y for spot in spots),
        lines=tuple(_line(way, end, x, y, last) for way, end in zip(ways, ends, strict=True)), spots=spots, crossings=meets,
        labels=_names(ways, names, [y(float(end)) for end in ends], right, layout),
    )


def last_tokens(T: int, furthest_crossing: Number) -> int:
    """Where the axis ends: a doubling beyond the last crossing and the reader's own T."""
    return next(1 << power for power in range(2, 12) if 1 << power >= max(float(furthest_crossing) * 1.25, T))


def _x_ticks(x: svg.Linear, last: int, T: int, crossings: Sequence[Number]) -> tuple[Tick, ...]:
    """The crossings and the reader's T have a tick of their own; quarters of the axis give way to them."""
    marks = sorted({float(T), *(float(tokens) for tokens in crossings)})
    quarters = [quarter * last / 4 for quarter in range(5)]
    free = [at for at in quarters if all(abs(x(at) - x(mark)) >= 26 for mark in marks)]
    own = [Tick(x(mark), f"{mark:g}", strong=mark == T) for mark in marks
           if mark == T or abs(x(mark) - x(T)) >= CHARACTER * (len(f"{mark:g}") + len(str(T))) / 2 + 6]
    return (*(Tick(x(at), f"{at:g}") for at in free), *own)


def _line(way: Amounts, end: Number, x: svg.Linear, y: svg.Linear, last: int) -> Line:
    path = svg.polyline([(x(0), y(float(way.fixed))), (x(last), y(float(end)))])
    return Line(way.axis, path if way.runs else "", "" if way.runs else path)


def _names(ways: Sequence[Amounts], names: Sequence[str], ends: Sequence[float], right: float, layout: Layout) -> tuple[
        Label, ...]:
    """Each line's name and last value behind its end; on a phone the bare name, on the line."""
    if layout.end_labels:
        heights = svg.spread([end + 4 for end in ends], LINE, layout.top, layout.bottom + 4)
        return tuple(Label(way.axis, right + 12, height, (name,), "start", marked=True)
                     for way, name, height in zip(ways, names, heights, strict=True))
    heights = svg.spread([end - 9 for end in ends], LINE, layout.top - 4, layout.bottom - 8)
    return tuple(Label(way.axis, right, height, (way.name,), "end") for way, height in zip(ways, heights, strict=True))
