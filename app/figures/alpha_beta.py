"""The figure *alpha-beta*: measured times of an all-reduce, the reader's own line through them, and the best one.

The times come from runs recorded with `python -m app.runs.record times` and stand in alpha_beta.json. Of many calls the first
decile counts, as in the run that a reader starts: `latency.timed` says why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from app.figures.fit_chart import NARROW, WIDE, FitChart, FitRow, Line, fit_chart, fit_row, typical_miss
from app.figures.inputs import Choice, Field, Inputs, Option
from app.figures.numbers import counted
from app.figures.time_chart import percent_text, rate_text, time_text
from app.theory import latency
from app.theory.latency import Fit, Point, Timed

RECORDED = Path(__file__).with_name("alpha_beta.json")
MICROSECOND, MEGABYTE = 1e-6, 10**6
FIELDS = (
    Field("P", "processes", "GPUs", 2, 4, 2),
    Field("alpha", "µs a message", "µs", 10, 1000, 30, step=10, symbol="α"),
    Field("B", "MB/s one way", "MB/s", 100, 5000, 500, step=50),
    Choice("best", "Best line", (Option("hidden", "hidden"), Option("shown", "shown"))),
)


@dataclass(frozen=True)
class AlphaBetaView:
    fit: Fit
    own_miss: float
    best_miss: float
    finding: tuple[str, str, str]
    wide: FitChart
    narrow: FitChart
    title: str
    table: tuple[FitRow, ...]
    recorded: str
    calls: int
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
    lines = (Line("your line", own), *((Line("best line", fit.seconds),) if shown else ()))
    wide, narrow = (fit_chart(points, lines, layout, room_for=(fit.seconds,)) for layout in (WIDE, NARROW))
    return AlphaBetaView(
        fit, own_miss, best_miss, finding, wide, narrow,
        title=f"Time of an all-reduce against its size, measured on {P} processes; your line with alpha {time_text(alpha)} and "
              f"{rate_text(B)}.",
        table=tuple(fit_row(P, one, fit) for one in timed_sizes(P)), recorded=_recorded(),
        calls=calls_of_each_size(), status="".join(finding),
    )


def measured(P: int) -> tuple[Point, ...]:
    """The first decile of the calls of each size."""
    return tuple(one.point for one in timed_sizes(P))


@cache
def best_fit(P: int) -> Fit:
    """Alpha and B of the machine that was recorded, for this many processes."""
    return latency.fit_alpha_beta(P, measured(P))


def _finding(fit: Fit, own_miss: float, best_miss: float, shown: bool) -> tuple[str, str, str]:
    own = percent_text(own_miss)
    if not shown:
        return "Your line misses the measured time by ", own, " on average. Turn α until it meets the small sizes, then B."
    constants = f"{time_text(fit.alpha_seconds)} a message and {rate_text(fit.bandwidth_bytes_per_second)}"
    return "The best line has ", constants, f", and misses by {percent_text(best_miss)} on average. Yours misses by {own}."


def _recorded() -> str:
    environment = recording()["environment"]
    return (f"{environment['backend']} of PyTorch {environment['torch']}, on an otherwise idle machine with "
            f"{counted(environment['cpu_count'], 'CPU core')}")


def calls_of_each_size() -> int:
    """How many calls a dot stands for."""
    return min(int(row["calls"]) for row in recording()["rows"])


def timed_sizes(P: int) -> tuple[Timed, ...]:
    """What was recorded at each size on so many processes, smallest first; empty where nothing was."""
    rows: list[Mapping[str, Any]] = recording()["rows"]
    return tuple(Timed(**{name: value for name, value in row.items() if name != "P"}) for row in rows if row["P"] == P)


@cache
def recording() -> Mapping[str, Any]:
    """The recorded file: the environment of the runs, and a row for each size on each number of processes."""
    return cast(Mapping[str, Any], json.loads(RECORDED.read_text(encoding="utf-8")))
