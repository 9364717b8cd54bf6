"""kernels.ring and strategies.ring_all_reduce: every collective on real gloo ranks, for lengths that P does not divide."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import pytest
import torch

from kernels.ring import execute, ring_all_reduce, ring_reduce_scatter
from kernels.schedule import COLLECTIVE_PLANS, elements_sent, elements_sent_so_far
from kernels.spec import COLLECTIVES, IMPLEMENTATIONS, Experiment, OptionValue
from kernels.strategies import ring_all_reduce as strategy
from tests.kernels.ranks import World, run_on_ranks

WORLD_SIZES = (1, 2, 3, 4, 5)
LENGTHS = (1, 2, 3, 5, 8, 13, 32)  # shorter than P, divided by P and not
DTYPES = {"fp32": torch.float32, "fp64": torch.float64, "bf16": torch.bfloat16}

pytestmark = pytest.mark.torchrun
each_world = pytest.mark.parametrize("world_size", WORLD_SIZES)
each_collective = pytest.mark.parametrize("collective", COLLECTIVES)
each_implementation = pytest.mark.parametrize("implementation", IMPLEMENTATIONS)


@dataclass(frozen=True)
class Outcome:
    """What one rank saw of one step."""

    difference: float
    payload_bytes: int
    calls: dict[str, int]


Case = tuple[str, str, int, str]  # collective, implementation, elements, dtype


def every_case(world: World) -> dict[Case, Outcome]:
    cases = [(collective, implementation, length, dtype) for collective in COLLECTIVES for implementation in IMPLEMENTATIONS
             for length in LENGTHS for dtype in DTYPES]
    return {case: outcome(world, *case) for case in cases}


def outcome(world: World, collective: str, implementation: str, length: int, dtype: str) -> Outcome:
    options: dict[str, OptionValue] = {"collective": collective, "implementation": implementation, "elements": length}
    run = strategy.build(world.context(Experiment("ring_all_reduce", options=options), DTYPES[dtype]))
    world.calls.clear()
    run.step()
    return Outcome(run.check(), world.calls.payload_bytes, dict(world.calls.counts))


@cache
def outcomes(world_size: int) -> list[dict[Case, Outcome]]:
    """One launch a world size; each test looks at its part."""
    return run_on_ranks(world_size, every_case)


@each_world
@each_collective
@each_implementation
def test_every_rank_ends_with_what_the_collective_promises(world_size: int, collective: str, implementation: str) -> None:
    wrong = {(rank, case): seen.difference for rank, cases in enumerate(outcomes(world_size)) for case, seen in cases.items()
             if case[:2] == (collective, implementation) and seen.difference != 0.0}
    assert wrong == {}


@each_world
@each_collective
def test_by_hand_a_rank_sends_exactly_the_chunks_of_its_plan(world_size: int, collective: str) -> None:
    for length in LENGTHS:
        sent = tuple(cases[collective, "ring", length, "fp32"].payload_bytes for cases in outcomes(world_size))
        planned = elements_sent(COLLECTIVE_PLANS[collective](world_size), length)
        assert sent == tuple(4 * elements for elements in planned)


def test_by_hand_empty_chunks_are_not_sent() -> None:
    sends = [cases["all_reduce", "ring", 1, "fp32"].calls.get("send", 0) for cases in outcomes(5)]
    assert sum(sends) == 2 * (5 - 1)


def test_the_library_is_asked_for_one_collective() -> None:
    calls = {collective: outcomes(4)[0][collective, "library", 8, "fp32"].calls for collective in COLLECTIVES}
    assert calls == {name: {"send" if name == "send_recv" else name: 1} for name in COLLECTIVES}


def count_after_each_step(world: World) -> dict[tuple[str, int], list[int]]:
    """Bytes that `comm` has counted before the first step and after each one."""
    comm = world.comm()
    assert comm is not None
    counted: dict[tuple[str, int], list[int]] = {}
    for collective, plan in COLLECTIVE_PLANS.items():
        if collective == "all_to_all":  # not in place: its steps are exchanges of their own
            continue
        for length in LENGTHS:
            world.calls.clear()
            seen = counted[collective, length] = [0]
            keep = partial(note_bytes, world, seen)
            execute(plan(world.world_size), torch.ones(length), comm, after_step=keep)
    return counted


def note_bytes(world: World, seen: list[int], steps_done: int) -> None:
    assert steps_done == len(seen)
    seen.append(world.calls.payload_bytes)


@each_world
def test_after_each_step_the_kernel_has_sent_what_the_plan_counts_so_far(world_size: int) -> None:
    by_rank = run_on_ranks(world_size, count_after_each_step)
    for collective, length in by_rank[0]:
        planned = elements_sent_so_far(COLLECTIVE_PLANS[collective](world_size), length)
        kernel = zip(*(counted[collective, length] for counted in by_rank), strict=True)
        assert [tuple(row) for row in kernel] == [tuple(4 * elements for elements in row) for row in planned]


def keep_a_result(world: World) -> tuple[list[float], list[float], float]:
    comm = world.comm()
    assert comm is not None
    buffer = torch.arange(6.0) + world.rank
    summed = ring_all_reduce(buffer, comm)
    unchanged = strategy.build(world.context(Experiment("ring_all_reduce")))
    unjudged = unchanged.check()
    own = ring_reduce_scatter(torch.ones(6), comm)
    assert summed is buffer
    return summed.tolist(), own.tolist(), unjudged


def test_all_reduce_works_in_place_and_reduce_scatter_leaves_rank_r_chunk_r() -> None:
    for summed, own, unjudged in run_on_ranks(4, keep_a_result):
        assert summed == [6.0, 10.0, 14.0, 18.0, 22.0, 26.0]
        assert set(own) == {4.0}
        assert unjudged == 0.0


def compare_with_a_wrong_result(world: World) -> float:
    run = strategy.build(world.context(Experiment("ring_all_reduce")))
    run.step()
    assert run.result is not None
    run.result[-1] += 1
    return run.check()


def test_one_wrong_element_is_seen() -> None:
    assert run_on_ranks(2, compare_with_a_wrong_result) == [1.0, 1.0]


def default_length(world: World) -> int:
    return strategy.build(world.context(Experiment("ring_all_reduce", L=3, H=4))).num_elements


def test_the_buffer_is_as_long_as_the_gradient_unless_told() -> None:
    assert run_on_ranks(1, default_length) == [3 * 4 * 4]
