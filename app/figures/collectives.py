"""The figure *collectives*: what each one sends, the formula's number beside numbers counted on sockets.

The counts come from runs recorded with `python -m app.runs.record bytes` and stand in collectives.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, cast

from app.figures.inputs import Choice, Field, Inputs, Option
from app.figures.numbers import counted, plain, times
from app.theory import CAUSE_TEXT, collectives, predict
from app.theory.predictions import Prediction
from app.theory.volume import UNEVEN
from kernels import spec

RECORDED = Path(__file__).with_name("collectives.json")
DTYPE = "fp32"
FIELDS = (
    Field("P", "GPUs", "GPUs", 2, 8, spec.P.default),
    Choice("s", "Full buffer", (Option("32", "32 numbers"), Option("1680", "1,680 numbers"))),
)
IMPLEMENTATIONS = (("ring", "by hand"), ("library", "gloo"))
LONGEST = 66.0  # percent of the drawing's width, so that a number fits behind the longest bar


@dataclass(frozen=True)
class Collective:
    """How the table speaks of one: what it does, what s is, and its formula for all GPUs together."""

    name: str
    title: str
    does: str
    formula: str


COLLECTIVES = (
    Collective("all_reduce", "All-reduce", "Everybody brings s numbers and leaves with their sum.", "2 (P − 1) s"),
    Collective("reduce_scatter", "Reduce-scatter", "Everybody brings s numbers and leaves with one chunk of the sum.",
               "(P − 1) s"),
    Collective("all_gather", "All-gather", "Everybody brings one chunk and leaves with all s numbers.", "(P − 1) s"),
    Collective("all_to_all", "All-to-all", "Everybody brings s numbers, one chunk for each.", "(P − 1) s"),
    Collective("broadcast", "Broadcast", "GPU 0 brings s numbers and everybody leaves with them.", "(P − 1) s"),
    Collective("send_recv", "Send and receive", "GPU 0 hands s numbers to GPU 1.", "s"),
)


@dataclass(frozen=True)
class Count:
    """One way to do it: counted numbers, rank by rank, and what departs from the formula."""

    label: str
    by_rank: tuple[int, ...]
    predicted: int  # as this backend was expected to send
    measured_percent: float
    difference: str
    why: str

    @property
    def total(self) -> int:
        return sum(self.by_rank)


@dataclass(frozen=True)
class Row:
    collective: Collective
    formula_total: int
    predicted_percent: float
    counts: tuple[Count, ...]


@dataclass(frozen=True)
class CollectivesView:
    rows: tuple[Row, ...]
    finding: tuple[str, str, str]
    recorded: str
    status: str


def compute(inputs: Inputs) -> CollectivesView:
    """The recorded counts at these values beside the formulas."""
    P, s = inputs.number("P"), int(inputs.choice("s"))
    percent = LONGEST / (2 * (P - 1) * s)
    rows = tuple(_row(collective, P, s, percent) for collective in COLLECTIVES)
    told = "; ".join(f"{row.collective.title} {row.formula_total:,}, counted " + " and ".join(
        f"{count.total:,} {count.label}" for count in row.counts) for row in rows)
    return CollectivesView(rows, _finding(P, s, rows), recorded_where(recording()["environment"]), f"P = {P}, s = {s}: {told}.")


def _row(collective: Collective, P: int, s: int, percent: float) -> Row:
    predictions = {name: _prediction(collective.name, name, P, s) for name, _ in IMPLEMENTATIONS}
    formula = predictions["ring"].taught.total
    counts = tuple(_count(label, counted_elements()[P, s, collective.name, name], predictions[name], percent)
                   for name, label in IMPLEMENTATIONS)
    return Row(collective, int(formula), float(formula) * percent, counts)


def _prediction(collective: str, implementation: str, P: int, s: int) -> Prediction:
    options: Mapping[str, str | int] = {"collective": collective, "implementation": implementation, "elements": s}
    return predict("ring_all_reduce", P=P, options=options)


def _count(label: str, by_rank: tuple[int, ...], prediction: Prediction, percent: float) -> Count:
    total, formula = sum(by_rank), prediction.taught.total
    difference, why = "", ""
    if total != formula:
        difference = f"{times(Fraction(total) / formula)} the formula"
        why = " ".join(CAUSE_TEXT[cause] for cause in prediction.causes if cause not in UNEVEN)
    return Count(label, by_rank, int(prediction.exact.total), total * percent, difference, why)


def _finding(P: int, s: int, rows: tuple[Row, ...]) -> tuple[str, str, str]:
    """What the reduce-scatter of gloo has in common with its all-reduce."""
    scatter = next(row for row in rows if row.collective.name == "reduce_scatter")
    sent, padded = scatter.counts[1].total, collectives.padded_length(s, P)
    tail = "" if padded == s else f" of the {padded:,} numbers that it fills the buffer up to"
    return (f"Asked for a reduce-scatter, gloo sends {counted(sent, 'number')} where the formula says "
            f"{plain(scatter.formula_total)}: ", "as many as an all-reduce", f"{tail}.")


def recorded_where(environment: Mapping[str, Any]) -> str:
    """On what the counts were taken."""
    return (f"{environment['backend']} of PyTorch {environment['torch']} on a machine with "
            f"{counted(environment['cpu_count'], 'CPU core')}")


@cache
def recording() -> Mapping[str, Any]:
    """The recorded file: the environment of the runs, and a row for each collective that ran."""
    return cast(Mapping[str, Any], json.loads(RECORDED.read_text(encoding="utf-8")))


@cache
def counted_elements() -> Mapping[tuple[int, int, str, str], tuple[int, ...]]:
    """Elements sent by each rank, by world size, length, collective and implementation."""
    size = spec.BYTES_PER_ELEMENT[DTYPE]
    return {(row["P"], row["elements"], row["collective"], row["implementation"]):
            tuple(sent // size for sent in row["payload_bytes_by_rank"]) for row in recording()["rows"]}
