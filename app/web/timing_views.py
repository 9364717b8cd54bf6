"""Times of an all-reduce -> what a page draws: alpha and B, points with the line through them, the residual, and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.figures import alpha_beta
from app.figures.fit_chart import NARROW, WIDE, FitChart, FitRow, Line, fit_chart, fit_row, typical_miss
from app.figures.time_chart import NBSP, percent_text, rate_text, size_text, time_text
from app.runs.timing import PURPOSE, buffer_bytes, timed_sizes
from app.theory.latency import Fit, Timed, fit_alpha_beta
from app.web.contexts import Term
from app.web.render import counted
from kernels.spec import RunReport, RunSpec

LINE = "fitted line"
NO_LINE = ("These times follow no line with a positive α and B. Something else wanted the processor; run it again when the "
           "machine is quieter.")


@dataclass(frozen=True)
class Timing:
    """One set of times. `name` keeps the drawings of two on one page apart; without a line there are no terms."""

    name: str
    finding: str
    terms: tuple[Term, ...]
    wide: FitChart
    narrow: FitChart
    title: str
    note: str
    caption: str
    line: str
    rows: tuple[FitRow, ...]

    @property
    def status(self) -> str:
        """The result in one line, for those who hear the page and for the drawing's description."""
        constants = (f"{term.meaning}: {term.number} {term.unit}." for term in self.terms)
        return " ".join((self.finding, *constants))


def is_timing(run: RunSpec) -> bool:
    """Whether a run takes times and counts no bytes."""
    return run.purpose == PURPOSE


def measured_times(name: str, report: RunReport) -> Timing:
    """Those of a run."""
    return timing_view(name, report.P, timed_sizes(report))


def recorded_times(name: str, world_size: int) -> tuple[Timing, Mapping[str, Any]] | None:
    """Those that ship with the figure, and where they were recorded; None where nobody did for so many processes."""
    times = alpha_beta.timed_sizes(world_size)
    return (timing_view(name, world_size, times), alpha_beta.recording()) if times else None


def timing_view(name: str, world_size: int, times: Sequence[Timed]) -> Timing:
    """Measured beside the line that misses it least."""
    points = [one.point for one in times]
    fit = _fit(world_size, times)
    lines = () if fit is None else (Line(LINE, fit.seconds, under=True),)
    wide, narrow = (fit_chart(points, lines, layout) for layout in (WIDE, NARROW))
    processes = counted(world_size, "process", "processes")
    return Timing(
        name=name,
        finding=NO_LINE if fit is None else f"Between {processes} the line misses the measured time by "
                                            f"{percent_text(typical_miss(points, fit.seconds))} on average.",
        terms=() if fit is None else _terms(fit),
        wide=wide,
        narrow=narrow,
        title=f"Time of an all-reduce against its size, measured on {processes}",
        note=_note(min(one.calls for one in times), fit is not None),
        caption=f"Time of one all-reduce on {processes}, measured and predicted",
        line=LINE,
        rows=tuple(fit_row(world_size, one, fit) for one in times),
    )


def _fit(world_size: int, times: Sequence[Timed]) -> Fit | None:
    try:
        return fit_alpha_beta(world_size, [one.point for one in times])
    except ValueError:
        return None


def _terms(fit: Fit) -> tuple[Term, ...]:
    amounts = ((time_text(fit.alpha_seconds), "α, for a message"),
               (rate_text(fit.bandwidth_bytes_per_second), "B, in one direction"))
    parts = [(*text.rsplit(NBSP, 1), meaning) for text, meaning in amounts]
    return tuple(Term("", number, unit, meaning, measured=True) for number, unit, meaning in parts)


def _note(calls: int, has_line: bool) -> str:
    dots = f"A dot stands for {calls} calls, each as long as its slowest process took; one in ten was faster than the dot."
    return f"{dots} The line is the formula at this α and B. Below it, how far dots lie above or under." if has_line else dots


def timing_titles(run: RunSpec) -> list[str]:
    """What the experiments of a timing run are called."""
    return [f"All-reduce of {size_text(buffer_bytes(one))}" for one in run.experiments]


def timing_setting(run: RunSpec) -> str:
    """'P = 4, 4 KiB to 4 MiB'."""
    return f"P{NBSP}={NBSP}{run.P}, {timing_range(run)}"


def timing_range(run: RunSpec) -> str:
    """'4 KiB to 4 MiB'."""
    sizes = sorted(buffer_bytes(one) for one in run.experiments)
    return f"{size_text(sizes[0])} to {size_text(sizes[-1])}"
