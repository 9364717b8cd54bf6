"""The figure *global batch*: which GPUs are one replica, and how many sequences an optimizer step works through."""

from __future__ import annotations

from dataclasses import dataclass

from app.figures import svg
from app.figures.inputs import Field, Inputs
from app.figures.numbers import counted
from app.figures.volume_words import Finding
from app.theory import batch

FIELDS = (
    Field("P", "GPUs", "GPUs", 1, 64, 16),
    Field("t", "tensor group", "GPUs", 1, 8, 2),
    Field("p", "stages", "stages", 1, 8, 2),
    Field("b", "sequences", "sequences", 1, 16, 2),
    Field("A", "micro-steps", "micro-steps", 1, 64, 16),
)
CELL, PITCH = 14.0, 18.0
INSET, GROUP_GAP = 7.0, 10.0


@dataclass(frozen=True)
class Group:
    """One replica: its frame, and a cell for each of its GPUs, tensor ranks side by side, stages below one another."""

    x: float
    y: float
    width: float
    height: float
    cells: str


@dataclass(frozen=True)
class Drawing:
    width: float
    height: float
    groups: tuple[Group, ...]
    spare: str  # cells of GPUs that belong to no replica


@dataclass(frozen=True)
class Factor:
    """A number of the product, and what it is."""

    number: str
    meaning: str


@dataclass(frozen=True)
class GlobalBatchView:
    replicas: int
    factors: tuple[Factor, ...]
    sign: str  # between factors, or between the two parts of what cannot run
    finding: Finding
    wide: Drawing
    narrow: Drawing
    title: str
    table: tuple[tuple[str, str], ...]
    status: str


def compute(inputs: Inputs) -> GlobalBatchView:
    """The product of app.theory.batch; where the groups do not tile the GPUs, the replicas that are whole and the rest."""
    P, t, p = inputs.number("P"), inputs.number("t"), inputs.number("p")
    b, A = inputs.number("b"), inputs.number("A")
    whole, spare = divmod(P, t * p)
    tiles = spare == 0
    total = batch.global_batch_of_world(P, t, 1, p, b, A) if tiles else 0
    title = f"{counted(P, 'GPU')} in {counted(whole, 'replica')} of {t} × {p}" + (f", {spare} left over" if spare else "")
    factors = (Factor(f"{whole:,}", _word(whole, "replica")), Factor(f"{b:,}", f"{_word(b, 'sequence')} a micro-batch"),
               Factor(f"{A:,}", _word(A, "micro-step")))
    parts = (Factor(f"{whole:,}", _word(whole, "whole replica")), Factor(f"{spare:,}", f"{_word(spare, 'GPU')} left over"))
    rows = (("GPUs in one replica, t × p", f"{t * p:,}"), ("Whole replicas, d = P / (t p)", f"{whole:,}"),
            ("GPUs left over", f"{spare:,}"), ("Sequences at a time, d × b", f"{whole * b:,}" if tiles else "refused"),
            ("Sequences an optimizer step, d × b × A", f"{total:,}" if tiles else "refused"))
    return GlobalBatchView(
        replicas=whole, factors=factors if tiles else parts, sign="×" if tiles else "+", finding=_finding(P, t, p, b, A, total),
        wide=_drawing(P, t, p, 820), narrow=_drawing(P, t, p, 350), title=title, table=rows,
        status=f"{title}: {counted(total, 'sequence')} an optimizer step." if tiles else f"{title}: refused.",
    )


def _word(count: int, noun: str) -> str:
    return counted(count, noun).split(" ", 1)[1]


def _finding(P: int, t: int, p: int, b: int, A: int, total: int) -> Finding:
    spare = P % (t * p)
    if t * p > P:
        return Finding(f"One replica needs {t} × {p} = {t * p} GPUs, and there are only {P}. ", "Nothing can run", ".", "")
    if spare:
        return Finding(f"{t} × {p} = {t * p} does not divide {P}: ", f"{counted(spare, 'GPU')} would belong to no replica",
                       ", and launchers refuse that.", "")
    strong = counted(total, "sequence")
    if t * p == 1:
        return Finding("Every GPU is a replica of its own, so each optimizer step works through ", strong, ".", "data")
    return Finding("Each optimizer step works through ", strong,
                   f", not {P * b * A:,}: the {t * p} GPUs of a replica work on the same sequences.", "data")


def _drawing(P: int, t: int, p: int, width: float) -> Drawing:
    """Replicas in rows; then the cells that are left over."""
    inside_width, inside_height = svg.squares_extent(t * p, t, CELL, PITCH)
    group_width, group_height = inside_width + 2 * INSET, inside_height + 2 * INSET
    columns = _a_row(width - 2, group_width, GROUP_GAP)
    whole, spare = divmod(P, t * p)
    groups: list[Group] = []
    for index in range(whole):
        x = 1 + index % columns * (group_width + GROUP_GAP)
        y = 1 + index // columns * (group_height + GROUP_GAP)
        groups.append(Group(x, y, group_width, group_height, svg.squares(t * p, x + INSET, y + INSET, t, CELL, PITCH)))
    bottom = groups[-1].y + group_height + GROUP_GAP if groups else 1.0
    across = _a_row(width - 2, CELL, PITCH - CELL)
    left_over = svg.squares(spare, 1 + INSET, bottom, across, CELL, PITCH) if spare else ""
    height = bottom + (svg.squares_extent(spare, across, CELL, PITCH)[1] if spare else -GROUP_GAP) + 2
    return Drawing(width, height, tuple(groups), left_over)


def _a_row(room: float, size: float, gap: float) -> int:
    """How many stand side by side: the largest power of two that fits, because clusters come in such numbers."""
    fitting = max(1, int((room + gap) // (size + gap)))
    return 1 << (fitting.bit_length() - 1)
