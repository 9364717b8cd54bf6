"""The figure *transformer layer*: where one layer of a Transformer combines its activations, and what that sends."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from app.figures.inputs import Choice, Field, Inputs, Option
from app.figures.numbers import counted, plain
from app.figures.transformer_layer_drawing import (
    AGAIN,
    ALL_GATHER,
    ALL_REDUCE,
    BACKWARD,
    FORWARD,
    NARROW,
    REDUCE_SCATTER,
    WIDE,
    Drawing,
    Operation,
    draw,
)
from app.theory import collectives, units

HEAD_WIDTH = 128  # numbers of one attention head, as in GPT-3
BYTES = "bf16"
HALVES = ("attention", "MLP")
FIELDS = (
    Field("b", "sequences", "sequences", 1, 8, 1),
    Field("s", "tokens each", "tokens", 512, 8192, 2048, step=512),
    Field("H", "width", "numbers", 1024, 16384, 12288, step=1024),
    Field("t", "GPUs", "GPUs", 1, 16, 8),
    Choice("activations", "Between blocks", (Option("replicated", "all tokens on every GPU"),
                                             Option("sequence", "each GPU its own tokens"))),
    Choice("recompute", "Recompute", (Option("none", "nothing"), Option("full", "the whole layer"))),
    Choice("unit", "In", (Option("elements", "elements"), Option(BYTES, f"bytes, {BYTES}"))),
)


@dataclass(frozen=True)
class PassRow:
    """One way through the layer: how often it combines, what that sends, its bar in percent."""

    name: str
    what: str
    number: str
    percent: float
    elements: Fraction


@dataclass(frozen=True)
class TransformerLayerView:
    rows: tuple[PassRow, ...]
    operations: tuple[Operation, ...]
    total: Fraction
    runs: bool
    unit: str
    finding: tuple[str, str, str]
    note: str
    wide: Drawing
    narrow: Drawing
    title: str
    status: str


@dataclass(frozen=True)
class Case:
    """The reader's values."""

    b: int
    s: int
    H: int
    t: int
    sequence: bool
    full: bool
    unit: str

    @property
    def activations(self) -> int:
        """Numbers of one activation: b s H."""
        return self.b * self.s * self.H

    @property
    def heads(self) -> int:
        return self.H // HEAD_WIDTH

    def sent(self, operation: Operation) -> Fraction:
        """Elements each GPU sends in it."""
        formulas = {ALL_REDUCE: collectives.ring_all_reduce, ALL_GATHER: collectives.all_gather,
                    REDUCE_SCATTER: collectives.reduce_scatter}
        return formulas[operation.kind](self.activations, self.t)

    def shown(self, elements: Fraction) -> str:
        return plain(elements if self.unit == "elements" else Fraction(units.bytes(elements, self.unit)))

    @property
    def unit_name(self) -> str:
        return "elements" if self.unit == "elements" else "bytes"


def compute(inputs: Inputs) -> TransformerLayerView:
    """Everything the figure shows at these inputs. All numbers come from app.theory."""
    case = Case(inputs.number("b"), inputs.number("s"), inputs.number("H"), inputs.number("t"),
                inputs.choice("activations") == "sequence", inputs.choice("recompute") == "full", inputs.choice("unit"))
    refusal = _refusal(case)
    steps = operations(case.sequence, case.full) if case.t > 1 and not refusal else ()
    total = sum((case.sent(step) for step in operations(case.sequence, case.full)), Fraction(0))
    passes = (FORWARD, AGAIN, BACKWARD) if case.full else (FORWARD, BACKWARD)
    rows = tuple(_row(case, name) for name in passes)
    finding = _finding(case, total, refusal)
    return TransformerLayerView(
        rows=rows, operations=steps, total=total, runs=not refusal, unit=case.unit_name, finding=finding,
        note=_note(case, refusal), wide=draw(steps, passes, WIDE), narrow=draw(steps, passes, NARROW),
        title=_title(case, steps), status="".join(finding),
    )


def operations(sequence: bool, full: bool) -> tuple[Operation, ...]:
    """Every collective of one layer and one micro-batch, in order: in each half one at f, before the column split, and
    one at g, after the row split; with replicated activations only one of the two has anything to do."""
    found: list[Operation] = []
    for name in (FORWARD, AGAIN, BACKWARD) if full else (FORWARD, BACKWARD):
        backward = name == BACKWARD
        for half in reversed(HALVES) if backward else HALVES:
            found += _of_half(name, half, backward, sequence)
    return tuple(found)


def _of_half(name: str, half: str, backward: bool, sequence: bool) -> list[Operation]:
    enters, leaves = ("g", "f") if backward else ("f", "g")
    if sequence:
        return [Operation(name, half, enters, ALL_GATHER), Operation(name, half, leaves, REDUCE_SCATTER)]
    return [Operation(name, half, leaves, ALL_REDUCE)]


def _row(case: Case, name: str) -> PassRow:
    every = operations(case.sequence, case.full)
    mine = [operation for operation in every if operation.name == name]
    elements = sum((case.sent(operation) for operation in mine), Fraction(0))
    longest = max(sum((case.sent(one) for one in every if one.name == other), Fraction(0)) for other in (FORWARD, BACKWARD))
    return PassRow(name, _counted(mine), case.shown(elements), float(98 * elements / longest) if longest else 0.0, elements)


def _counted(steps: list[Operation] | tuple[Operation, ...]) -> str:
    kinds = [step.kind for step in steps]
    return " and ".join(counted(kinds.count(kind), kind) for kind in (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER) if kind in kinds)


def _refusal(case: Case) -> str:
    """Why no run is started; empty where one can be."""
    if case.heads % case.t:
        return f"{case.t} GPUs cannot share {case.heads} attention heads equally"
    if case.sequence and case.s % case.t:
        return f"{case.t} GPUs cannot share {case.s:,} tokens equally"
    return ""


def _finding(case: Case, total: Fraction, refusal: str) -> tuple[str, str, str]:
    if refusal:
        return f"{refusal}, so ", "no run is started", "."
    if case.t == 1:
        return "A group of one GPU combines nothing and sends ", f"0 {case.unit_name}", "."
    every = operations(case.sequence, case.full)
    amount = f"{case.shown(total)} {case.unit_name}"
    if case.sequence:
        return f"{_counted(every)}: ", amount, (" sent by each GPU for one layer, as much as all-reduces would send.")
    if case.full:
        return f"{_counted(every)}: ", amount, " sent by each GPU for one layer, half as much again as without recomputation."
    return f"{_counted(every)}: ", amount, " sent by each GPU for one layer and one micro-batch."


def _note(case: Case, refusal: str) -> str:
    if refusal:
        return f"The numbers above are the formula’s alone. A head is {HEAD_WIDTH} numbers wide here, and stays on one GPU."
    share = f"{case.heads // case.t} of {case.heads} heads on each GPU" if case.t > 1 else f"all {case.heads} heads on one GPU"
    tokens = f", {case.s // case.t:,} of {case.s:,} tokens between the blocks" if case.sequence and case.t > 1 else ""
    return f"An activation is {case.b} × {case.s:,} × {case.H:,} = {case.activations:,} numbers; {share}{tokens}."


def _title(case: Case, steps: tuple[Operation, ...]) -> str:
    done = "; ".join(f"{one.name}, {one.half}: {one.kind} at {one.place}" for one in steps) or "nothing is combined"
    return f"One Transformer layer on {counted(case.t, 'GPU')}. {done}."
