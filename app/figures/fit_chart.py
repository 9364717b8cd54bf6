"""Measured times against size, lines through them, and under both how far each point lies from the last line. Pure.

The figure *alpha-beta* draws recorded times with it, and a page draws those of a run that its reader started.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.figures import svg
from app.figures.time_chart import Layout, Text, Tick, TimePlane, rate_text, size_text, time_plane, time_text
from app.theory import latency
from app.theory.latency import Fit, Point, Timed

WIDE = Layout(820, 490, 62, 800, 40, 300)
NARROW = Layout(350, 490, 56, 332, 40, 300)
RESIDUAL_TOP, RESIDUAL_BOTTOM = 390.0, 480.0
BAR = 9.0
SIZE_TICKS = 2**2
NARROW_SIZE_TICKS = 2**5

Law = Callable[[int], float]


@dataclass(frozen=True)
class Line:
    """A law with its name, which stands at its left end, or `under` its right half, where a line through dots leaves room."""

    name: str
    law: Law
    under: bool = False


@dataclass(frozen=True)
class Miss:
    """How far a measured time lies from the line: an upright bar from the middle of the lower panel, and percent."""

    x: float
    y: float
    height: float
    percent: float


@dataclass(frozen=True)
class FitChart:
    layout: Layout
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[tuple[str, str], ...]  # class, path
    spots: tuple[svg.Point, ...]
    misses: tuple[Miss, ...]
    middle: float
    miss_ticks: tuple[Tick, ...]
    texts: tuple[Text, ...]
    judged_by: str


@dataclass(frozen=True)
class FitRow:
    """One size in the table; what a line says is "" where there is none."""

    size: str
    measured: str
    median: str
    predicted: str
    percent: str
    algbw: str
    busbw: str


def fit_chart(points: Sequence[Point], lines: Sequence[Line], layout: Layout, room_for: Sequence[Law] = ()) -> FitChart:
    """One or two lines; the points are judged by the last one. `room_for` are laws that the scale of time holds as well, so
    that it stays when they are drawn."""
    sizes = [point.n for point in points]
    between = sorted({*sizes, *(round(size * 2**0.5) for size in sizes[:-1])})
    laws = [line.law for line in lines]
    every = [point.seconds for point in points] + [law(size) for law in (*laws, *room_for) for size in (sizes[0], sizes[-1])]
    plane = time_plane(layout, sizes, every)
    paths = tuple(("curve" if line is lines[-1] else "curve second", plane.line(between, line.law)) for line in lines)
    misses, ticks, middle = _misses(points, laws[-1], plane) if laws else ((), (), 0.0)
    return FitChart(
        layout, plane.size_ticks(SIZE_TICKS if layout is WIDE else NARROW_SIZE_TICKS), plane.time_ticks(), paths,
        tuple(plane.at(point.n, point.seconds) for point in points), misses, middle, ticks,
        _names(plane, sizes, lines), lines[-1].name if lines else "",
    )


def typical_miss(points: Sequence[Point], law: Law) -> float:
    """Percent of the measured time by which a line misses it, on average over the sizes."""
    return 100 * sum(abs(point.seconds - law(point.n)) / point.seconds for point in points) / len(points)


def _misses(points: Sequence[Point], law: Law, plane: TimePlane) -> tuple[tuple[Miss, ...], tuple[Tick, ...], float]:
    """Bars up where a call took longer than the line says, down where it was faster."""
    percents = [100 * (point.seconds - law(point.n)) / point.seconds for point in points]
    top = svg.round_up(max(5.0, *(abs(percent) for percent in percents)))
    scale = svg.Linear(-top, top, RESIDUAL_BOTTOM, RESIDUAL_TOP)
    middle = scale(0)
    misses = tuple(Miss(plane.x(point.n) - BAR / 2, min(scale(percent), middle), abs(scale(percent) - middle), percent)
                   for point, percent in zip(points, percents, strict=True))
    ticks = tuple(Tick(scale(sign * top), f"{name}{top * abs(sign):g} %") for sign, name in ((1, "+"), (0, ""), (-1, "−")))
    return misses, ticks, middle


def _names(plane: TimePlane, sizes: Sequence[int], lines: Sequence[Line]) -> tuple[Text, ...]:
    """A name above the left end of its line; the lower one of two is named below."""
    if len(lines) == 1 and lines[0].under:
        size = sizes[len(sizes) * 3 // 4]
        return (Text(plane.layout.right, plane.y(lines[0].law(size)) + 30, "end", lines[0].name, strong=True),)
    x = plane.layout.left + 10
    placed = sorted((plane.y(line.law(sizes[0])), -number, line.name) for number, line in enumerate(lines))
    offsets = (-12.0,) if len(placed) == 1 else (-14.0, 24.0)
    return tuple(Text(x, y + offset, "start", name, strong=True)
                 for (y, _, name), offset in zip(placed, offsets[:len(placed)], strict=True))


def fit_row(P: int, one: Timed, fit: Fit | None) -> FitRow:
    """A size as the table writes it: measured, by the line, and the two rates that benchmarks print."""
    n, seconds = one.n, one.first_decile_seconds
    predicted = None if fit is None else fit.seconds(n)
    percent = "" if predicted is None else _signed(100 * (seconds - predicted) / seconds)
    return FitRow(size_text(n), time_text(seconds), time_text(one.median_seconds),
                  "" if predicted is None else time_text(predicted), percent, rate_text(latency.algbw(n, seconds)),
                  rate_text(latency.busbw(P, n, seconds)))


def _signed(percent: float) -> str:
    """+10 %, −3 %, 0 %."""
    whole = round(percent)
    return f"{whole:+d} %".replace("-", "−") if whole else "0 %"
