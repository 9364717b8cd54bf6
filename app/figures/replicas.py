"""The figure *replicas*: one weight on several GPUs, what each would do alone, and why the same average keeps them equal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.figures import svg
from app.figures.inputs import Choice, Inputs, Option
from app.figures.numbers import Number, plain, word
from app.figures.volume_words import Finding
from app.theory import batch, loss
from kernels.spec import LOSS_TOKENS

FIELDS = (
    Choice("P", "GPUs", (Option("1", "one"), Option("2", "two"), Option("4", "four"))),
    Choice("loss", "Loss of each", (Option("sum", "sum"), Option("mean", "mean"))),
    Choice("sync", "Gradients", (Option("averaged", "averaged, as DDP does"), Option("alone", "left alone"))),
)
RECORDED = Path(__file__).with_name("recorded") / "loss_reduction.json"
LEARNING_RATE = Fraction(1, 100)
STEPS = 6
FULL = 84.0  # percent of the room that the longest bar takes
LINE = 18.0
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Row:
    """A gradient: whose, from which tokens, and how large. `measured` is a real run's, as wide as it came out."""

    name: str
    tokens: str
    value: Number
    width: float
    measured: float | None
    strong: bool

    @property
    def text(self) -> str:
        return plain(self.value)


@dataclass(frozen=True)
class Layout:
    """The chart's frame, as the macro that draws axes reads it."""

    width: float
    height: float
    top: float
    bottom: float


@dataclass(frozen=True)
class Tick:
    at: float
    text: str
    strong: bool = False


@dataclass(frozen=True)
class Line:
    """One weight over the steps. Dotted is the single process."""

    name: str
    points: tuple[svg.Point, ...]
    dotted: bool
    label_y: float

    @property
    def path(self) -> str:
        return svg.polyline(self.points)


@dataclass(frozen=True)
class Chart:
    layout: Layout
    left: float
    right: float
    unit: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class ReplicasView:
    rows: tuple[Row, ...]
    finding: Finding
    measured: str
    rate: str
    wide: Chart
    narrow: Chart
    heads: tuple[str, ...]
    table: tuple[tuple[str, ...], ...]
    status: str


@dataclass(frozen=True)
class Case:
    """The gradients at w = 1: of each replica alone, as each uses it, and of one process with all tokens."""

    d: int
    loss: str
    averaged: bool

    @property
    def own(self) -> tuple[Number, ...]:
        return tuple(self._gradient(*loss.replica_tokens(replica, self.d)) for replica in range(self.d))

    @property
    def alone(self) -> Number:
        return self._gradient(1, len(LOSS_TOKENS))

    @property
    def average(self) -> Number:
        return Fraction(batch.averaged_gradient(sum(self.own), self.d))

    @property
    def used(self) -> tuple[Number, ...]:
        return (self.average,) * self.d if self.averaged else self.own

    def _gradient(self, first: int, last: int) -> Number:
        return (loss.summed_gradient if self.loss == "sum" else loss.mean_gradient)(first, last)


def compute(inputs: Inputs) -> ReplicasView:
    """Gradients come from app.theory; the weight after k steps is (1 - rate * gradient)^k, for the loss is a parabola."""
    case = Case(int(inputs.choice("P")), inputs.choice("loss"), inputs.choice("sync") == "averaged")
    finding = _finding(case)
    weights = _weights(case)
    return ReplicasView(
        rows=_rows(case), finding=finding, measured=_measured_sentence(case), rate=f"{float(LEARNING_RATE):g}",
        wide=_chart(weights, Layout(820, 300, 44, 250), 150), narrow=_chart(weights, Layout(350, 300, 44, 250), 96),
        heads=tuple(name for name, _ in weights),
        table=tuple((str(step), *(f"{float(values[step]):.4f}" for _, values in weights)) for step in range(STEPS + 1)),
        status=f"{', '.join(f'GPU {rank}: {plain(value)}' for rank, value in enumerate(case.own))}. {finding.text}",
    )


def _rows(case: Case) -> tuple[Row, ...]:
    longest = max(case.alone, case.average, *case.own)
    measured = _measured(case)

    def row(name: str, tokens: Sequence[int], value: Number, real: float | None = None, strong: bool = False) -> Row:
        return Row(name, _tokens(tokens), value, _percent(value, longest), None if real is None else _percent(real, longest),
                   strong)

    rows = [row(f"GPU {replica}", _tokens_of(replica, case.d), value) for replica, value in enumerate(case.own)]
    if case.averaged:
        rows.append(row("every GPU uses" if case.d > 1 else "it uses", (), case.average, measured["gradient_of_ddp"], True))
    rows.append(row("one process", LOSS_TOKENS, case.alone, measured["gradient_of_one_process"]))
    return tuple(rows)


def _tokens_of(replica: int, d: int) -> tuple[int, ...]:
    first, last = loss.replica_tokens(replica, d)
    return LOSS_TOKENS[first - 1 : last]


def _tokens(tokens: Sequence[int]) -> str:
    return ", ".join(str(token).replace("-", MINUS) for token in tokens)


def _percent(value: Number | float, longest: Number) -> float:
    return FULL * float(value) / float(longest)


@lru_cache(maxsize=1)
def _reports() -> tuple[Mapping[str, Any], ...]:
    return tuple(json.loads(RECORDED.read_text(encoding="utf-8")))


def _report(case: Case) -> Mapping[str, Any]:
    return next(report for report in _reports() if report["spec"]["P"] == case.d
                and report["spec"]["options"].get("loss", "sum") == case.loss)


def _measured(case: Case) -> Mapping[str, float]:
    values: Mapping[str, float] = _report(case)["measured"]["values"]
    return values


def _measured_sentence(case: Case) -> str:
    values, environment = _measured(case), _report(case)["environment"]
    together = case.averaged and case.d > 1
    ddp = f"{values['gradient_of_ddp']:g} in each of {word(case.d)} processes under DDP, and " if together else ""
    return (f"Fills are measured: a recorded run of PyTorch {environment['torch']} found {ddp}"
            f"{values['gradient_of_one_process']:g} in one process with all four tokens.")


def _weights(case: Case) -> tuple[tuple[str, tuple[Fraction, ...]], ...]:
    """Name and course of each weight that goes its own way."""
    if case.averaged or case.d == 1:
        name = "all replicas" if case.d > 1 else "the replica"
        courses = [(name, case.used[0])]
    else:
        courses = [(f"GPU {replica}", value) for replica, value in enumerate(case.used)]
    return tuple((name, _course(value)) for name, value in [*courses, ("one process", case.alone)])


def _course(gradient: Number) -> tuple[Fraction, ...]:
    return tuple((1 - LEARNING_RATE * Fraction(gradient)) ** step for step in range(STEPS + 1))


def _chart(weights: Sequence[tuple[str, tuple[Fraction, ...]]], layout: Layout, room: float) -> Chart:
    left, right = 46.0, layout.width - room
    x, y = svg.Linear(0, STEPS, left, right), svg.Linear(0, 1, layout.bottom, layout.top)
    points = [tuple((x(step), y(float(value))) for step, value in enumerate(values)) for _, values in weights]
    heights = svg.spread([line[-1][1] + 5 for line in points], LINE, layout.top, layout.bottom + 4)
    return Chart(
        layout=layout, left=left, right=right, unit="weight w",
        x_ticks=tuple(Tick(x(step), str(step)) for step in range(STEPS + 1)),
        y_ticks=tuple(Tick(y(value), f"{value:g}") for value in (0, 0.25, 0.5, 0.75, 1)),
        lines=tuple(Line(name, line, name == "one process", height)
                    for (name, _), line, height in zip(weights, points, heights, strict=True)),
    )


def _finding(case: Case) -> Finding:
    if case.d == 1:
        return Finding("One GPU is the single process: its gradient is ", plain(case.alone), ", and nothing is averaged.", "")
    if not case.averaged:
        return Finding("Left alone, ", f"{word(case.d)} GPUs train {word(case.d)} models", ": their weights part at the very "
                       "first step.", "")
    everyone = "Both" if case.d == 2 else f"All {word(case.d)}"
    if case.average == case.alone:
        return Finding(f"{everyone} replicas step by the same {plain(case.average)}, which is ",
                       "exactly what one process finds", " with all four tokens.", "data")
    return Finding(f"{everyone} replicas step by the same {plain(case.average)}, so they stay equal, but that is ",
                   f"{plain(case.alone)} divided by {case.d}", ": DDP averages, and a sum should have been added up.", "data")
