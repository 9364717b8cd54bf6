"""The figure *what moves*: four GPUs, one strategy, and its payload drawn number by number."""

from __future__ import annotations

from dataclasses import dataclass

from app.figures import svg
from app.figures.gpus import CLEARANCE, HEIGHT, WIDTH, Gpu, Link, gpu, link
from app.figures.inputs import Inputs
from app.figures.numbers import plain, word
from app.figures.strategies import DATA, PIPELINE, STRATEGY_CHOICE, TENSOR, Strategy
from app.theory import collectives, data_parallel, pipeline_parallel, tensor_parallel
from kernels import spec

FIELDS = (STRATEGY_CHOICE,)

P, L, H, T = 4, spec.L.default, spec.H.default, spec.T.default  # four GPUs stand in a square; the model is the course's own
CORNERS: tuple[svg.Point, ...] = ((0, 0), (268, 0), (268, 280), (0, 280))  # clockwise from the top left
DRAWING_WIDTH, DRAWING_HEIGHT = 268 + WIDTH, 280 + HEIGHT
TAPE_LEFT, TAPE_PITCH, TAPE_ROW = 146, 16, 24
TAPE_SQUARE = 13


@dataclass(frozen=True)
class Send:
    """One line of the tape: what is sent, and how many numbers."""

    label: str
    count: int
    y: float
    squares: str
    number_x: float


@dataclass(frozen=True)
class Panel:
    """One strategy: who holds what, what is under way, and every send of the step."""

    strategy: Strategy
    chosen: bool
    gpus: tuple[Gpu, ...]
    links: tuple[Link, ...]
    unused: str
    total: str
    whose: tuple[str, str]
    title: str
    tape_heading: str
    tape: tuple[Send, ...]
    tape_height: float
    headline: str
    text: str
    table: tuple[str, ...]


@dataclass(frozen=True)
class WhatMovesView:
    panels: tuple[Panel, ...]
    width: float
    height: float
    status: str

    @property
    def caption(self) -> str:
        return f"One training step of {word(L)} layers of {H} × {H} on {word(P)} GPUs, with {word(T)} token a batch."


def compute(inputs: Inputs) -> WhatMovesView:
    """All three panels; the chosen one is marked. Counts come from app.theory."""
    chosen = inputs.choice("strategy")
    panels = (_data(chosen == DATA.name), _tensor(chosen == TENSOR.name), _pipeline(chosen == PIPELINE.name))
    shown = next(panel for panel in panels if panel.chosen)
    return WhatMovesView(panels, DRAWING_WIDTH, DRAWING_HEIGHT, f"{shown.strategy.title}: {shown.title}")


def _ring(count: int) -> tuple[Link, ...]:
    """Four arrows clockwise, each with the same payload."""
    top, right, bottom, left = 50.0, 268 + WIDTH / 2, 280 + HEIGHT / 2, WIDTH / 2
    inner_x, inner_y = (WIDTH + CLEARANCE - 4, 268 - CLEARANCE + 4), (HEIGHT + CLEARANCE - 4, 280 - CLEARANCE + 4)
    return (
        link((inner_x[0], top), (inner_x[1], top), count), link((right, inner_y[0]), (right, inner_y[1]), count),
        link((inner_x[1], bottom), (inner_x[0], bottom), count), link((left, inner_y[1]), (left, inner_y[0]), count),
    )


def _data(chosen: bool) -> Panel:
    params = data_parallel.params(L, H)
    chunks = collectives.balanced_chunks(params, P)
    sent = data_parallel.volume(P, L, H)
    hops = [f"add up, hop {hop}" for hop in range(1, P)], [f"hand out, hop {hop}" for hop in range(1, P)]
    everything = frozenset((layer, row) for layer in range(L) for row in range(H))
    tape = _tape([(label, chunks[0]) for label in hops[0]], [(label, chunks[0]) for label in hops[1]])
    return Panel(
        strategy=DATA, chosen=chosen, gpus=_gpus([everything] * P), links=_ring(chunks[0]), unused="", total=plain(sent),
        whose=("numbers sent", "by each GPU"),
        title=f"{word(P).capitalize()} GPUs in a ring, each with all {params} weights; {chunks[0]} numbers go to the next "
              f"at every hop, {plain(sent)} from each GPU in a step.",
        tape_heading="Sent by one GPU in one step", tape=tape, tape_height=_tape_height(tape),
        headline="The whole gradient goes round.",
        text=f"All {params} numbers, in {word(P)} pieces of {chunks[0]}. {word(P - 1).capitalize()} hops add the pieces up, "
             f"{word(P - 1)} more bring the sums to everybody: {2 * (P - 1)} × {chunks[0]} = {plain(sent)}.",
        table=(f"gradient, {params} numbers in pieces of {chunks[0]}", str(2 * (P - 1)), f"{plain(sent)} by each GPU"),
    )


def _tensor(chosen: bool) -> Panel:
    activation = T * H
    piece = collectives.balanced_chunks(activation, P)[0]
    once = tensor_parallel.boundary_volume(P, H, T)
    sent = tensor_parallel.taught_volume(P, L, H, T)
    forward = [(f"layer {layer}, forward", int(once)) for layer in range(1, L + 1)]
    backward = [(f"layer {layer}, backward", int(once)) for layer in range(L, 0, -1)]
    rows = [frozenset((layer, rank) for layer in range(L)) for rank in range(P)]
    tape = _tape(forward, backward)
    return Panel(
        strategy=TENSOR, chosen=chosen, gpus=_gpus(rows), links=_ring(piece), unused="", total=plain(sent),
        whose=("numbers sent", "by each GPU"),
        title=f"{word(P).capitalize()} GPUs in a ring, each with one row of every layer; {word(piece)} number goes to the "
              f"next at every hop, {plain(sent)} from each GPU in a step.",
        tape_heading="Sent by one GPU in one step", tape=tape, tape_height=_tape_height(tape),
        headline="A small activation, again and again.",
        text=f"Only {word(activation)} numbers, but they go round {word(2 * L)} times: every layer leaves partial sums to add "
             f"up, forward and backward. {2 * L} × {plain(once)} = {plain(sent)}. A gradient stays where its weight is.",
        table=(f"activation, {activation} numbers in pieces of {piece}", str(2 * L * 2 * (P - 1)),
               f"{plain(sent)} by each GPU"),
    )


def _pipeline(chosen: bool) -> Panel:
    one_way = pipeline_parallel.boundary_volume(H, T, 1)
    sent = pipeline_parallel.exact_volume(P, L, H, T, 1)
    stages, idle = pipeline_parallel.stages(P, L), pipeline_parallel.idle_gpus(P, L)
    layers = [frozenset((rank, row) for row in range(H)) if rank < stages else frozenset() for rank in range(P)]
    tape = _tape([("GPU 0 to 1, forward", one_way), ("GPU 1 to 0, backward", one_way)])
    left, right = WIDTH + CLEARANCE - 4, 268 - CLEARANCE + 4
    return Panel(
        strategy=PIPELINE, chosen=chosen, gpus=_gpus(layers, stages),
        links=(link((left, 33), (right, 33), one_way), link((right, 67), (left, 67), one_way)),
        unused="M334 103V277M265 330H135M66 277V103", total=plain(sent), whose=("numbers sent", "by all together"),
        title=f"GPU 0 has layer 1 and GPU 1 has layer 2; {word(one_way)} numbers go over and {word(one_way)} come back, "
              f"{sent} in all. GPUs 2 and 3 are idle.",
        tape_heading="Sent by all GPUs in one step", tape=tape, tape_height=_tape_height(tape),
        headline="One hand-over, between neighbours.",
        text=f"Nothing is added up, so nothing goes round. {word(L).capitalize()} layers make {word(stages)} stages, and "
             f"{word(idle)} of the {word(P)} GPUs are left without work.",
        table=(f"activation and its gradient, {one_way} numbers each", "1 by GPU 0, 1 by GPU 1",
               f"{sent} by all GPUs together"),
    )


def _gpus(holds: list[frozenset[tuple[int, int]]], active: int = P) -> tuple[Gpu, ...]:
    return tuple(gpu(rank, *CORNERS[rank], H, L, held, rank >= active) for rank, held in enumerate(holds))


def _tape(*groups: list[tuple[str, int]]) -> tuple[Send, ...]:
    """Every send on a line of its own, with a little more air between groups."""
    sends: list[Send] = []
    y = 0.0
    for group in groups:
        for label, count in group:
            squares = svg.squares(count, TAPE_LEFT, y, count, TAPE_SQUARE, TAPE_PITCH)
            sends.append(Send(label, count, y + 12, squares, TAPE_LEFT + count * TAPE_PITCH + 6))
            y += TAPE_ROW
        y += 10
    return tuple(sends)


def _tape_height(tape: tuple[Send, ...]) -> float:
    return tape[-1].y + 8


