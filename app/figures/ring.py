"""The figure *ring*: an all-reduce step by step, from the very plan that `kernels.ring` executes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from app.figures import svg
from app.figures.inputs import Field, Inputs
from app.figures.numbers import counted, word
from app.figures.ring_drawing import Holding, RingDrawing, draw
from app.theory import units
from kernels import schedule, spec
from kernels.schedule import Plan, Transfer

DTYPE = "fp32"
MOST_GPUS = 8
STEP = Field("step", "of the ring", "steps", 0, 2 * (MOST_GPUS - 1), 1)
FIELDS = (
    Field("P", "GPUs", "GPUs", 2, MOST_GPUS, spec.P.default),
    Field("s", "numbers", "numbers", 1, 48, 32),
    STEP,
)
WIDE_COLUMNS, NARROW_COLUMNS = 4, 2
MOST_SQUARES = 64
SQUARE, PITCH = 8.0, 10.0


@dataclass(frozen=True)
class SentBy:
    """What one GPU has sent so far and will have sent, in words, as squares and as shares of the longest bar."""

    rank: int
    elements: int
    text: str
    sent: str  # squares, where there are few
    ahead: str
    sent_percent: float
    ahead_percent: float


@dataclass(frozen=True)
class StepRow:
    """One step of the plan as the table lists it."""

    number: int
    done: bool
    name: str
    messages: str
    sent: tuple[int, ...]
    total_bytes: int


@dataclass(frozen=True)
class RingView:
    """The state after `step` of `last_step` steps; `elements_sent` is what each GPU has sent by then."""

    P: int
    step: int
    last_step: int
    step_field: Field
    wide: RingDrawing
    narrow: RingDrawing
    title: str
    phase: str
    middle: tuple[str, str, str]
    finding: tuple[str, str, str]
    ranks: tuple[SentBy, ...]
    squares_width: float
    total: str
    elements_sent: tuple[int, ...]
    holding: Holding
    steps: tuple[StepRow, ...]
    status: str


def compute(inputs: Inputs) -> RingView:
    """A step beyond the last one of this ring is the last one."""
    P, s = inputs.number("P"), inputs.number("s")
    plan = schedule.ring_all_reduce(P)
    last = len(plan.steps)
    step = min(inputs.number("step"), last)
    so_far = schedule.elements_sent_so_far(plan, s)
    holding = holdings(plan)[step]
    moving = plan.steps[step - 1] if step else ()
    finding = _finding(P, s, step, so_far[step])
    phase = _phase(P, step)
    ranks = tuple(_sent_by(rank, so_far[step][rank], so_far[last][rank], max(so_far[last])) for rank in range(P))
    total = (f"all GPUs together: {sum(so_far[step])} of {counted(sum(so_far[last]), 'number')}, "
             f"{as_bytes(sum(so_far[step])):,} bytes in {DTYPE}")
    return RingView(
        P=P, step=step, last_step=last, step_field=replace(STEP, maximum=last),
        wide=draw(s, holding, moving, WIDE_COLUMNS), narrow=draw(s, holding, moving, NARROW_COLUMNS),
        title=f"{P} GPUs in a ring after step {step} of {last}. {' '.join(_told(transfer) for transfer in moving)}".strip(),
        phase=phase, middle=_middle(so_far[step]), finding=finding, ranks=ranks,
        squares_width=_squares_width(max(so_far[last])), total=total, elements_sent=so_far[step], holding=holding,
        steps=tuple(_step_row(number, step, plan, so_far[number]) for number in range(last + 1)),
        status=f"{phase} {''.join(finding)} Sent so far by {total}.",
    )


def as_bytes(elements: int) -> int:
    """Bytes of so many numbers on this page's wire."""
    return int(units.bytes(elements, DTYPE))


@lru_cache(maxsize=MOST_GPUS)
def holdings(plan: Plan) -> tuple[Holding, ...]:
    """Whose numbers are added into each chunk on each GPU: before the first step, and after each one."""
    now = [[frozenset({rank}) for _ in range(plan.num_chunks)] for rank in range(plan.world_size)]
    states = [tuple(map(tuple, now))]
    for step in plan.steps:
        arrivals = [(transfer, now[transfer.sender][transfer.chunk]) for transfer in step]
        for transfer, arrived in arrivals:
            kept = now[transfer.receiver][transfer.chunk] if transfer.reduces else frozenset()
            now[transfer.receiver][transfer.chunk] = kept | arrived
        states.append(tuple(map(tuple, now)))
    return tuple(states)


def _phase(P: int, step: int) -> str:
    half = P - 1
    if step == 0:
        return f"Before the first of {2 * half} steps."
    if step <= half:
        return f"Reduce-scatter, step {step} of {half}."
    return f"All-gather, step {step - half} of {half}."


def _middle(sent: tuple[int, ...]) -> tuple[str, str, str]:
    """The number in the ring's middle and whose it is; a range where GPUs differ."""
    least, most = min(sent), max(sent)
    if least == most:
        return str(most), "numbers sent so far", "by each GPU"
    return f"{least}–{most}", "numbers sent so far", "by one GPU"


def _finding(P: int, s: int, step: int, sent: tuple[int, ...]) -> tuple[str, str, str]:
    """What this state means: before, stressed, after."""
    half = P - 1
    if step == 0:
        return "Every GPU has its own ", counted(s, "number"), f", cut into {word(P)} chunks. Nothing is added up yet."
    if step < half:
        return "The chunk that has just arrived is now a sum over ", f"{word(step + 1)} GPUs", f". {_left(half - step)}."
    if step == half:
        return ("Each GPU holds ", "one finished chunk",
                f": a sum over {'both' if P == 2 else f'all {word(P)}'} GPUs, and no other GPU has it. This far it is a "
                "reduce-scatter.")
    if step < 2 * half:
        return "Each GPU holds ", f"{word(step - half + 1)} finished chunks", f" of {word(P)}. From here on sums are copied on."
    if max(sent) == min(sent):
        return "Every GPU has the whole sum. Each has sent ", counted(sent[0], "number"), f" to get there, of a buffer of {s}."
    return ("Every GPU has the whole sum. They have sent ", f"{min(sent)} to {max(sent)} numbers",
            f", because {s} cannot be cut into {word(P)} equal chunks.")


def _left(steps: int) -> str:
    if steps == 1:
        return "One more step of adding up is to come"
    return f"{word(steps).capitalize()} more steps of adding up are to come"


def _sent_by(rank: int, sent: int, in_all: int, most: int) -> SentBy:
    few = 0 < most <= MOST_SQUARES
    return SentBy(
        rank, sent, f"{sent} of {in_all}",
        svg.squares(sent, 0.5, 4, MOST_SQUARES, SQUARE, PITCH) if few else "",
        svg.squares(in_all - sent, 0.5 + sent * PITCH, 4, MOST_SQUARES, SQUARE, PITCH) if few else "",
        98 * sent / max(most, 1), 98 * (in_all - sent) / max(most, 1),
    )


def _squares_width(most: int) -> float:
    return svg.squares_extent(most, most, SQUARE, PITCH)[0] + 1 if 0 < most <= MOST_SQUARES else 0


def _told(transfer: Transfer) -> str:
    done = "adds" if transfer.reduces else "keeps"
    return f"GPU {transfer.sender} sends chunk {transfer.chunk} to GPU {transfer.receiver}, which {done} it."


def _step_row(number: int, current: int, plan: Plan, sent: tuple[int, ...]) -> StepRow:
    moving = plan.steps[number - 1] if number else ()
    messages = ", ".join(f"{one.sender} → {one.receiver}: chunk {one.chunk}" for one in moving) or "none"
    name = _phase(plan.world_size, number).rstrip(".") if number else "Start"
    return StepRow(number, number == current, name, messages, sent, as_bytes(sum(sent)))
