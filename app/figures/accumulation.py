"""The figure *accumulation*: A micro-steps of one GPU, with one sync at the end and with a sync in each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from app.figures import gantt, svg
from app.figures.inputs import Field, Inputs
from app.figures.numbers import Number, counted, plain, times
from app.figures.volume_words import Finding
from app.theory import data_parallel
from kernels import spec

FIELDS = (
    Field("A", "micro-steps", "micro-steps", 1, 16, 4),
    Field("P", "GPUs", "GPUs", 1, 64, 4),
    Field("R", "all-reduce, in forward passes", "forward passes", 1, 6, 2),
)
FORWARD, BACKWARD, UPDATE = 1, 2, 1  # time; a backward pass multiplies twice where a forward pass multiplies once
LANES = ("compute", "network")
HILL = 44.0  # height of the drawing of activations


@dataclass(frozen=True)
class Drawing:
    """One way to sync at one width: the timeline, and under it the activations that are held."""

    chart: gantt.Chart
    hills: str
    hill_top: float
    height: float


@dataclass(frozen=True)
class Way:
    """When gradients are reduced, what that sends, and how it goes."""

    title: str
    number: str
    all_reduces: str
    spans: tuple[gantt.Span, ...]
    ends: int
    wide: Drawing
    narrow: Drawing
    description: str


@dataclass(frozen=True)
class Row:
    """One span in words: what the table says about each way."""

    what: str
    start: int
    end: int


@dataclass(frozen=True)
class AccumulationView:
    ways: tuple[Way, Way]
    finding: Finding
    status: str

    def table(self, way: Way) -> tuple[Row, ...]:
        return tuple(Row(span.name, int(span.start), int(span.end)) for span in way.spans)


def compute(inputs: Inputs) -> AccumulationView:
    """Both timelines on one scale. Elements come from app.theory, for the course's own model."""
    A, P, R = inputs.number("A"), inputs.number("P"), inputs.number("R")
    params = data_parallel.params(spec.L.default, spec.H.default)
    once = data_parallel.synced_once_volume(params, P)
    every = data_parallel.synced_every_micro_step_volume(params, P, A)
    few, many = (1, A) if P > 1 else (0, 0)  # a GPU that is alone has nobody to reduce with
    last = _length(A, many, R)
    ways = (
        _way("One sync, after the last micro-step", once, few, A, R, last),
        _way("A sync in every micro-step", every, many, A, R, last),
    )
    status = f"{counted(A, 'micro-step')} on {counted(P, 'GPU')}: {plain(once)} elements sent by each GPU with one sync, " \
             f"{plain(every)} with a sync in every micro-step."
    return AccumulationView(ways, _finding(A, P, once, every), status)


def spans(A: int, syncs: int, R: int) -> tuple[gantt.Span, ...]:
    """What one GPU does: A times forward and backward, an all-reduce after the last `syncs` of them, one update."""
    made: list[gantt.Span] = []
    now = 0
    for step in range(1, A + 1):
        made.append(gantt.Span(0, now, now + FORWARD, "forward", f"forward of micro-step {step}", "F"))
        made.append(gantt.Span(0, now + FORWARD, now + FORWARD + BACKWARD, "backward", f"backward of micro-step {step}", "B"))
        now += FORWARD + BACKWARD
        if step > A - syncs:
            made.append(gantt.Span(1, now, now + R, "sent", f"all-reduce after micro-step {step}"))
            now += R
    return (*made, gantt.Span(0, now, now + UPDATE, "update", "optimizer step"))


def _length(A: int, syncs: int, R: int) -> int:
    return A * (FORWARD + BACKWARD) + syncs * R + UPDATE


def _way(title: str, sent: Number, syncs: int, A: int, R: int, last: int) -> Way:
    made = spans(A, syncs, R)
    drawn = [_drawing(made, last, layout) for layout in (gantt.WIDE, gantt.NARROW)]
    all_reduces = counted(syncs, "all-reduce") if syncs else "no all-reduce"
    return Way(
        title=title, number=plain(sent), all_reduces=all_reduces, spans=made, ends=_length(A, syncs, R),
        wide=drawn[0], narrow=drawn[1],
        description=f"{title}: {counted(A, 'time')} forward and backward, {all_reduces}, then one optimizer step. "
                    "Activations rise with each forward pass and are gone after its backward pass, whatever A is.",
    )


def _drawing(made: tuple[gantt.Span, ...], last: int, layout: gantt.Layout) -> Drawing:
    chart = gantt.chart(made, LANES, last, layout)
    top = chart.axis_y + (14 if layout.names_above else 2)
    return Drawing(chart, _hills(made, gantt.scale_of(last, layout), top), top, top + HILL)


def _hills(made: tuple[gantt.Span, ...], scale: svg.Linear, top: float) -> str:
    """Activations held: up while a forward pass keeps them, down while its backward pass uses them up."""
    points = [(scale(0), top + HILL - 1)]
    for span in made:
        if span.kind == "forward":
            points += [(scale(span.start), top + HILL - 1), (scale(span.end), top + 8)]
        elif span.kind == "backward":
            points.append((scale(span.end), top + HILL - 1))
    return svg.polyline(points)


def _finding(A: int, P: int, once: Fraction, every: Fraction) -> Finding:
    if P == 1:
        return Finding("One GPU has nobody to agree with. It accumulates just the same, and sends ", "nothing", ".", "")
    if A == 1:
        return Finding("With a single micro-step there is nothing to put off: both ways send ", f"the same {plain(once)}",
                       " elements.", "data")
    return Finding("A sync in every micro-step makes each GPU send ", f"{times(every / once)} as much",
                   f": {plain(every)} elements instead of {plain(once)}, for the same gradient.", "data")
