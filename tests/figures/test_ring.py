"""The ring: what the figure shows after each step is what the kernel has done by then, message for message."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from app.figures import FIGURES
from app.figures.engine import figure_state
from app.figures.ring import RingView, holdings
from app.figures.ring_drawing import RingDrawing
from app.theory import evaluate
from kernels import ring, schedule
from tests.kernels.ranks import World, run_on_ranks

RING = FIGURES["ring"]
WORLD_SIZES = (2, 3, 4, 5)
LENGTHS = (1, 3, 10, 32, 48)
values = st.fixed_dictionaries({"P": st.integers(2, 8), "s": st.integers(1, 48), "step": st.integers(0, 14)})


def drawn(**query: Any) -> RingView:
    state = figure_state(RING, {name: str(value) for name, value in query.items()})
    assert not state.errors
    assert isinstance(state.view, RingView)
    return state.view


def squares(path: str) -> int:
    return path.count("M")


def chunk_totals(view: RingView) -> list[list[int]]:
    return [[len(contributors) for contributors in chunks] for chunks in view.holding]


# Against the kernel, on real gloo ranks.


def after_each_step(world: World, lengths: tuple[int, ...]) -> dict[int, list[tuple[int, list[float]]]]:
    """For each length what this rank has sent, and its buffer, before the first step and after each one."""
    comm = world.comm()
    assert comm is not None
    seen: dict[int, list[tuple[int, list[float]]]] = {}
    for length in lengths:
        world.calls.clear()
        buffer = torch.full((length,), 2.0**world.rank, dtype=torch.float64)  # a sum of powers of two tells its parts
        states = [(0, buffer.tolist())]

        def keep(steps_done: int, buffer: torch.Tensor = buffer, states: list[tuple[int, list[float]]] = states) -> None:
            states.append((world.calls.payload_bytes // buffer.element_size(), buffer.tolist()))

        ring.execute(schedule.ring_all_reduce(comm.size), buffer, comm, keep)
        seen[length] = states
    return seen


@cache
def executed(world_size: int) -> list[dict[int, list[tuple[int, list[float]]]]]:
    ranks: list[dict[int, list[tuple[int, list[float]]]]] = run_on_ranks(world_size, after_each_step, LENGTHS)
    return ranks


@pytest.mark.torchrun
@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_bytes_so_far_are_what_the_kernel_has_sent_after_each_step(world_size: int) -> None:
    for length in LENGTHS:
        for step in range(2 * (world_size - 1) + 1):
            view = drawn(P=world_size, s=length, step=step)
            sent = tuple(rank[length][step][0] for rank in executed(world_size))
            assert view.elements_sent == sent
            assert view.steps[step].sent == sent
            assert view.steps[step].total_bytes == 4 * sum(sent)


@pytest.mark.torchrun
@pytest.mark.parametrize("world_size", WORLD_SIZES)
def test_contributions_shown_are_those_in_the_kernels_buffers(world_size: int) -> None:
    bounds = schedule.chunk_bounds(48, world_size)
    for step in range(2 * (world_size - 1) + 1):
        for rank, chunks in enumerate(drawn(P=world_size, s=48, step=step).holding):
            buffer = executed(world_size)[rank][48][step][1]
            for contributors, (start, stop) in zip(chunks, bounds, strict=True):
                assert set(buffer[start:stop]) == {sum(2.0**contributor for contributor in contributors)}


# What it says.


def test_the_lessons_ring_sends_48_numbers_by_each_of_four() -> None:
    view = drawn(P=4, s=32, step=6)
    assert view.elements_sent == (48,) * 4
    assert view.finding[1] == "48 numbers"
    assert view.steps[-1].total_bytes == 768


def test_half_way_each_gpu_holds_one_finished_chunk_and_no_two_the_same() -> None:
    for P in range(2, 9):
        view = drawn(P=P, step=P - 1)
        finished = [[chunk for chunk, total in enumerate(totals) if total == P] for totals in chunk_totals(view)]
        assert sorted(chunk for chunks in finished for chunk in chunks) == list(range(P))
        assert all(len(chunks) == 1 for chunks in finished)
        assert view.phase == f"Reduce-scatter, step {P - 1} of {P - 1}."


def test_it_begins_with_one_contribution_everywhere_and_ends_with_all() -> None:
    for P in range(2, 9):
        plan = schedule.ring_all_reduce(P)
        assert {len(held) for chunks in holdings(plan)[0] for held in chunks} == {1}
        assert {len(held) for chunks in holdings(plan)[-1] for held in chunks} == {P}


def test_the_first_step_ghosts_no_message_and_the_start_draws_none() -> None:
    assert not drawn(step=0).wide.links
    assert drawn(step=0).wide.unused
    assert not drawn(step=1).wide.unused


def test_a_step_beyond_the_last_is_the_last_and_the_dial_ends_there() -> None:
    view = drawn(P=3, step=14)
    assert view.step == view.last_step == view.step_field.maximum == 4


def test_gpus_that_send_unequally_are_told_apart() -> None:
    view = drawn(P=4, s=10, step=6)
    assert sum(view.elements_sent) == evaluate("collectives.ring_all_reduce_total", {"s": 10, "P": 4})
    assert view.finding[1] == f"{min(view.elements_sent)} to {max(view.elements_sent)} numbers"
    assert "–" in view.middle[0]


# Drawing and table are two views of the same numbers.


@settings(max_examples=80, deadline=None)
@given(values)
def test_drawing_and_table_show_the_same(at: dict[str, int]) -> None:
    view = drawn(**at)
    P, s, step = view.P, at["s"], view.step
    sizes = schedule.chunk_sizes(s, P)
    here = next(row for row in view.steps if row.done)
    assert (here.number, here.sent) == (step, view.elements_sent)
    for drawing in (view.wide, view.narrow):
        assert [squares(gpu.held) for gpu in drawing.gpus] == [sum(totals) for totals in chunk_totals(view)]
        assert [squares(gpu.held) + squares(gpu.absent) for gpu in drawing.gpus] == [P * P] * P
        named = [int(name.text.removeprefix("chunk ")) for name in drawing.names]
        assert [link.count for link in drawing.links] == [squares(link.payload) for link in drawing.links]
        assert [link.count for link in drawing.links] == [sizes[chunk] for chunk in named]
        assert [f"{rank} → {(rank + 1) % P}: chunk {chunk}" for rank, chunk in enumerate(named)] == (
            here.messages.split(", ") if step else [])
    for row, sent in zip(view.ranks, view.elements_sent, strict=True):
        assert row.text.startswith(f"{sent} of ")
        assert not row.sent or squares(row.sent) == sent


@settings(max_examples=80, deadline=None)
@given(values)
def test_nothing_is_drawn_outside_or_over_a_gpu(at: dict[str, int]) -> None:
    view = drawn(**at)
    assert view.narrow.width <= 400
    assert view.wide.width <= 820
    for drawing in (view.wide, view.narrow):
        for link in drawing.links:
            x, y, width, height = link.gap
            assert link.count == 0 or (x >= 0 and x + width <= drawing.width and y >= 0 and y + height <= drawing.height)
            assert not any(overlap(link.gap, gpu.x, gpu.y) for gpu in drawing.gpus)
        assert all(0 <= name.x <= drawing.width and 12 <= name.y <= drawing.height for name in drawing.names)
        assert all(is_path(path) for path in paths(drawing) if path)


def overlap(gap: tuple[float, float, float, float], x: float, y: float) -> bool:
    left, top, width, height = gap
    return left < x + 128 and left + width > x + 4 and top < y + 96 and top + height > y + 4


def paths(drawing: RingDrawing) -> list[str]:
    links = [path for link in drawing.links for path in (link.line, link.head, link.payload)]
    gpus = [path for gpu in drawing.gpus for path in (gpu.held, gpu.absent, gpu.pins)]
    return [drawing.unused, drawing.arrived, *links, *gpus]


def is_path(data: str) -> bool:
    return re.fullmatch(r"(M[-\d. ]+([hvLHV][-\d. ]+)*z?)+", data) is not None
