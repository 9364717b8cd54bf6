"""The figure *alpha-beta*: measured times of an all-reduce, the reader's own line through them, and the best one.

The times come from runs recorded with `python -m app.runs.record times` and stand in alpha_beta.json. Of many calls the fastest
counts: the model knows no other process that wants the processor.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from app.figures import svg
from app.figures.inputs import Choice, Field, Inputs, Option
from app.figures.numbers import counted
from app.figures.time_chart import (
    Layout,
    Text,
    Tick,
    TimePlane,
    percent_text,
    rate_text,
    size_text,
    time_plane,
    time_text,
)
from app.theory import latency
from app.theory.latency import Fit, Point

RECORDED = Path(__file__).with_name("alpha_beta.json")
MICROSECOND, MEGABYTE = 1e-6, 10**6
FIELDS = (
    Field("P", "processes", "GPUs", 2, 4, 2),
    Field("alpha", "µs a message", "µs", 10, 1000, 30, step=10, symbol="α"),
    Field("B", "MB/s one way", "MB/s", 100, 5000, 500, step=50),
    Choice("best", "Best line", (Option("hidden", "hidden"), Option("shown", "shown"))),
)
WIDE = Layout(820, 490, 62, 800, 40, 300)
NARROW = Layout(350, 490, 56, 332, 40, 300)
RESIDUAL_TOP, RESIDUAL_BOTTOM = 390.0, 480.0
BAR = 9.0
SIZE_TICKS = 2**2
NARROW_SIZE_TICKS = 2**5

Law = Callable[[int], float]


@dataclass(frozen=True)
class Miss:
    """How far a measured call lies from the line: an upright bar from the middle of the lower panel, and percent."""

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


@dataclass(frozen=True)
class FitRow:
    """One size in the table."""

    size: str
    measured: str
    median: str
    best: str
    percent: str
    algbw: str
    busbw: str


@dataclass(frozen=True)
class AlphaBetaView:
    fit: Fit
    own_miss: float
    best_miss: float
    finding: tuple[str, str, str]
    residual_of: str
    wide: FitChart
    narrow: FitChart
    title: str
    table: tuple[FitRow, ...]
    recorded: str
    status: str


def compute(inputs: Inputs) -> AlphaBetaView:
    """The reader's line is `ring_all_reduce_seconds`, the best one `fit_alpha_beta`."""
    P = inputs.number("P")
    alpha, B = inputs.number("alpha") * MICROSECOND, inputs.number("B") * MEGABYTE
    points, fit = measured(P), best_fit(P)

    def own(n: int) -> float:
        return latency.ring_all_reduce_seconds(P, n, alpha, B)

    shown = inputs.choice("best") == "shown"
    own_miss, best_miss = typical_miss(points, own), typical_miss(points, fit.seconds)
    finding = _finding(fit, own_miss, best_miss, shown)
    return AlphaBetaView(
        fit, own_miss, best_miss, finding, "the best line" if shown else "your line",
        _chart(points, own, fit, shown, WIDE), _chart(points, own, fit, shown, NARROW),
        title=f"Time of an all-reduce against its size, measured on {P} processes; your line with alpha {time_text(alpha)} and "
              f"{rate_text(B)}.",
        table=tuple(_row(row, fit) for row in _rows(P)), recorded=_recorded(), status="".join(finding),
    )


def measured(P: int) -> tuple[Point, ...]:
    """The fastest call of each size."""
    return tuple(Point(row["n"], row["fastest_seconds"]) for row in _rows(P))


@cache
def best_fit(P: int) -> Fit:
    """Alpha and B of this machine, for this many processes."""
    return latency.fit_alpha_beta(P, measured(P))


def typical_miss(points: tuple[Point, ...], law: Law) -> float:
    """Percent of the measured time by which a line misses it, on average over the sizes."""
    return 100 * sum(abs(point.seconds - law(point.n)) / point.seconds for point in points) / len(points)


def _finding(fit: Fit, own_miss: float, best_miss: float, shown: bool) -> tuple[str, str, str]:
    own = percent_text(own_miss)
    if not shown:
        return "Your line misses the measured time by ", own, " on average. Turn α until it meets the small sizes, then B."
    constants = f"{time_text(fit.alpha_seconds)} a message and {rate_text(fit.bandwidth_bytes_per_second)}"
    return "The best line has ", constants, f", and misses by {percent_text(best_miss)} on average. Yours misses by {own}."


def _chart(points: tuple[Point, ...], own: Law, fit: Fit, shown: bool, layout: Layout) -> FitChart:
    sizes = [point.n for point in points]
    between = sorted({*sizes, *(round(size * 2**0.5) for size in sizes[:-1])})
    every = [point.seconds for point in points] + [law(size) for law in (own, fit.seconds) for size in (sizes[0], sizes[-1])]
    plane = time_plane(layout, sizes, every)
    lines = [("curve second" if shown else "curve", plane.line(between, own))]
    if shown:
        lines.append(("curve", plane.line(between, fit.seconds)))
    judged = fit.seconds if shown else own
    misses, ticks, middle = _misses(points, judged, plane)
    spots = tuple(plane.at(point.n, point.seconds) for point in points)
    return FitChart(
        layout, plane.size_ticks(SIZE_TICKS if layout is WIDE else NARROW_SIZE_TICKS), plane.time_ticks(), tuple(lines), spots,
        misses, middle, ticks, _texts(plane, sizes, own, fit, shown),
    )


def _misses(points: tuple[Point, ...], law: Law, plane: TimePlane) -> tuple[tuple[Miss, ...], tuple[Tick, ...], float]:
    """Bars up where a call took longer than the line says, down where it was faster."""
    percents = [100 * (point.seconds - law(point.n)) / point.seconds for point in points]
    top = svg.round_up(max(5.0, *(abs(percent) for percent in percents)))
    scale = svg.Linear(-top, top, RESIDUAL_BOTTOM, RESIDUAL_TOP)
    middle = scale(0)
    misses = tuple(Miss(plane.x(point.n) - BAR / 2, min(scale(percent), middle), abs(scale(percent) - middle), percent)
                   for point, percent in zip(points, percents, strict=True))
    ticks = tuple(Tick(scale(sign * top), f"{name}{top * abs(sign):g} %") for sign, name in ((1, "+"), (0, ""), (-1, "−")))
    return misses, ticks, middle


def _texts(plane: TimePlane, sizes: list[int], own: Law, fit: Fit, shown: bool) -> tuple[Text, ...]:
    """Names at the left end of each line; where both are close, the best one is named below."""
    x = plane.layout.left + 10
    yours = plane.y(own(sizes[0]))
    if not shown:
        return (Text(x, yours - 12, "start", "your line", strong=True),)
    best = plane.y(fit.seconds(sizes[0]))
    above, below = (("your line", yours), ("best line", best)) if yours < best else (("best line", best), ("your line", yours))
    return (Text(x, above[1] - 14, "start", above[0], strong=True), Text(x, below[1] + 24, "start", below[0], strong=True))


def _row(row: Mapping[str, Any], fit: Fit) -> FitRow:
    n, seconds = int(row["n"]), float(row["fastest_seconds"])
    percent = 100 * (seconds - fit.seconds(n)) / seconds
    return FitRow(size_text(n), time_text(seconds), time_text(row["median_seconds"]), time_text(fit.seconds(n)),
                  f"{percent:+.0f} %".replace("-", "−"), rate_text(latency.algbw(n, seconds)),
                  rate_text(latency.busbw(fit.P, n, seconds)))


def _recorded() -> str:
    environment = recording()["environment"]
    calls = min(row["calls"] for row in recording()["rows"])
    return (f"{environment['backend']} of PyTorch {environment['torch']}, on a machine with "
            f"{counted(environment['cpu_count'], 'CPU core')} that did other work as well; the fastest of {calls} calls")


def _rows(P: int) -> list[Mapping[str, Any]]:
    return [row for row in recording()["rows"] if row["P"] == P]


@cache
def recording() -> Mapping[str, Any]:
    """The recorded file: the environment of the runs, and a row for each size on each number of processes."""
    return cast(Mapping[str, Any], json.loads(RECORDED.read_text(encoding="utf-8")))
