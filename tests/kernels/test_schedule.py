"""kernels.schedule: what must hold of every plan and every schedule, whatever its size."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.schedule import (
    COLLECTIVE_PLANS,
    PIPELINE_SCHEDULES,
    Action,
    Plan,
    Schedule,
    Transfer,
    chunk_bounds,
    chunk_sizes,
    elements_sent,
    gpipe,
    one_f_one_b,
    pairwise_all_to_all,
    ring_all_gather,
    ring_all_reduce,
    ring_reduce_scatter,
    send_to_next,
    stage_layers,
    timeline,
    tree_broadcast,
    waits_for,
)
from kernels.spec import COLLECTIVES

BuildPlan = Callable[[int], Plan]
BuildSchedule = Callable[[int, int], Schedule]

world_sizes = st.integers(1, 12)
lengths = st.integers(0, 60)
shapes = st.tuples(st.integers(1, 9), st.integers(1, 12))  # stages, micro-batches
each_schedule = pytest.mark.parametrize("build", PIPELINE_SCHEDULES.values(), ids=PIPELINE_SCHEDULES.keys())


# --- Collectives -----------------------------------------------------------------------------------------------------


def contributions(plan: Plan, held: list[list[set[int]]]) -> list[list[set[int]]]:
    """Carries out a plan on sets: held[rank][chunk] names the ranks whose numbers are in it. A number never counts twice."""
    for step in plan.steps:
        on_the_way = [(transfer, set(held[transfer.sender][transfer.chunk])) for transfer in step]
        for transfer, arriving in on_the_way:
            mine = held[transfer.receiver][transfer.chunk]
            if transfer.reduces:
                assert not mine & arriving
                mine |= arriving
            else:
                held[transfer.receiver][transfer.chunk] = arriving
    return held


def own_everywhere(plan: Plan) -> list[list[set[int]]]:
    return [[{rank} for _ in range(plan.num_chunks)] for rank in range(plan.world_size)]


@given(world_sizes)
def test_ring_all_reduce_leaves_every_contribution_in_every_chunk_of_every_rank(world_size: int) -> None:
    plan = ring_all_reduce(world_size)
    everyone = set(range(world_size))
    assert contributions(plan, own_everywhere(plan)) == [[everyone] * world_size] * world_size


@given(world_sizes, st.integers(0, 3))
def test_ring_reduce_scatter_completes_the_shifted_chunk_of_each_rank(world_size: int, shift: int) -> None:
    plan = ring_reduce_scatter(world_size, shift)
    held = contributions(plan, own_everywhere(plan))
    assert all(held[rank][(rank + shift) % world_size] == set(range(world_size)) for rank in range(world_size))


@given(world_sizes, st.integers(0, 3))
def test_ring_all_gather_brings_each_chunk_from_its_owner_to_all(world_size: int, shift: int) -> None:
    plan = ring_all_gather(world_size, shift)
    held = contributions(plan, own_everywhere(plan))
    assert all(row == [{(chunk - shift) % world_size} for chunk in range(world_size)] for row in held)


def test_ring_all_reduce_sends_chunk_r_minus_k_in_step_k_of_the_first_half() -> None:
    first, second = ring_all_reduce(3).steps[:2]
    assert first == (Transfer(0, 1, 0, True), Transfer(1, 2, 1, True), Transfer(2, 0, 2, True))
    assert second == (Transfer(0, 1, 2, True), Transfer(1, 2, 0, True), Transfer(2, 0, 1, True))


@given(world_sizes)
def test_on_a_ring_every_rank_sends_one_message_and_receives_one_in_every_step(world_size: int) -> None:
    for step in ring_all_reduce(world_size).steps:
        assert sorted(transfer.sender for transfer in step) == list(range(world_size))
        assert all(transfer.receiver == (transfer.sender + 1) % world_size for transfer in step)


@given(world_sizes)
def test_tree_broadcast_reaches_all_from_rank_0_in_log2_steps(world_size: int) -> None:
    plan = tree_broadcast(world_size)
    assert contributions(plan, own_everywhere(plan)) == [[{0}]] * world_size
    assert len(plan.steps) == ceil(log2(world_size))


@given(world_sizes)
def test_all_to_all_sends_each_pair_of_ranks_exactly_one_chunk_each_way(world_size: int) -> None:
    sent = [transfer for step in pairwise_all_to_all(world_size).steps for transfer in step]
    pairs = {(transfer.sender, transfer.receiver) for transfer in sent}
    assert len(sent) == len(pairs) == world_size * (world_size - 1)
    assert all(transfer.chunk == transfer.receiver for transfer in sent)


@given(world_sizes, lengths)
def test_totals_equal_the_closed_forms_for_lengths_that_p_does_not_divide(world_size: int, length: int) -> None:
    totals = {name: sum(elements_sent(plan(world_size), length)) for name, plan in COLLECTIVE_PLANS.items()}
    others = (world_size - 1) * length
    assert totals == {"all_reduce": 2 * others, "reduce_scatter": others, "all_gather": others, "broadcast": others,
                      "all_to_all": others, "send_recv": length if world_size > 1 else 0}


@given(world_sizes, lengths)
def test_on_a_ring_a_rank_sends_all_chunks_but_one_in_each_half(world_size: int, length: int) -> None:
    sizes = chunk_sizes(length, world_size)
    reduced = elements_sent(ring_reduce_scatter(world_size), length)
    gathered = elements_sent(ring_all_gather(world_size), length)
    assert reduced == tuple(length - sizes[rank] for rank in range(world_size))
    assert gathered == tuple(length - sizes[(rank + 1) % world_size] for rank in range(world_size))


# Payload sent by rank in multiples of the buffer, read from the kernel's TCP counters: torch 2.13.0, gloo over loopback.
GLOO_BROADCAST = {2: (1, 0), 3: (2, 0, 0), 4: (2, 1, 0, 0), 5: (3, 1, 0, 0, 0), 6: (3, 2, 0, 0, 0, 0),
                  7: (3, 2, 1, 0, 0, 0, 0), 8: (3, 2, 1, 1, 0, 0, 0, 0)}


@pytest.mark.parametrize(("world_size", "copies"), GLOO_BROADCAST.items())
def test_tree_broadcast_is_cut_by_rank_as_gloo_was_measured(world_size: int, copies: tuple[int, ...]) -> None:
    assert elements_sent(tree_broadcast(world_size), 32) == tuple(32 * count for count in copies)


@given(lengths, st.integers(1, 12))
def test_chunks_cover_the_buffer_in_order_and_differ_by_one_at_most(length: int, num_chunks: int) -> None:
    bounds = chunk_bounds(length, num_chunks)
    covered = [element for start, stop in bounds for element in range(start, stop)]
    sizes = chunk_sizes(length, num_chunks)
    assert covered == list(range(length))
    assert sizes == tuple(stop - start for start, stop in bounds) == tuple(sorted(sizes, reverse=True))
    assert max(sizes) - min(sizes) <= 1


def test_there_is_a_plan_for_every_collective_that_may_be_asked_for() -> None:
    assert tuple(COLLECTIVE_PLANS) == COLLECTIVES


@pytest.mark.parametrize("plan", COLLECTIVE_PLANS.values(), ids=COLLECTIVE_PLANS.keys())
def test_one_rank_sends_nothing_and_no_rank_is_refused(plan: BuildPlan) -> None:
    assert plan(1).steps == ()
    with pytest.raises(ValueError, match="world_size = 0"):
        plan(0)


def test_impossible_cuts_and_sums_of_plans_are_refused_by_name_and_value() -> None:
    with pytest.raises(ValueError, match="num_chunks = 0"):
        chunk_sizes(4, 0)
    with pytest.raises(ValueError, match="num_elements = -1"):
        chunk_sizes(-1, 2)
    with pytest.raises(ValueError, match="plans of different shape"):
        ring_all_gather(3) + send_to_next(3)


# --- Pipelines -------------------------------------------------------------------------------------------------------


def in_flight(row: tuple[Action, ...]) -> int:
    """Most micro-batches whose forward is done and whose backward is not."""
    now = most = 0
    for action in row:
        now += 1 if action.kind == "F" else -1
        most = max(most, now)
    return most


@each_schedule
@given(shape=shapes)
def test_every_stage_does_every_forward_once_and_its_backward_later(build: BuildSchedule, shape: tuple[int, int]) -> None:
    num_stages, num_micro_batches = shape
    for stage, row in enumerate(build(num_stages, num_micro_batches)):
        assert len(row) == 2 * num_micro_batches
        for micro_batch in range(num_micro_batches):
            assert row.index(Action(stage, "F", micro_batch)) < row.index(Action(stage, "B", micro_batch))


@each_schedule
@given(shape=shapes)
def test_no_action_starts_before_what_it_waits_for_has_ended(build: BuildSchedule, shape: tuple[int, int]) -> None:
    slots = {slot.action: slot for slot in timeline(build(*shape))}
    assert len(slots) == 2 * shape[0] * shape[1]
    for action, slot in slots.items():
        assert all(slots[needed].end <= slot.start for needed in waits_for(action, shape[0]))


@each_schedule
@given(shape=shapes)
def test_a_stage_does_one_thing_at_a_time(build: BuildSchedule, shape: tuple[int, int]) -> None:
    slots = timeline(build(*shape))
    for stage in range(shape[0]):
        own = [slot for slot in slots if slot.action.stage == stage]
        assert all(before.end <= after.start for before, after in pairwise(own))


@each_schedule
@given(shape=shapes)
def test_micro_batches_cross_a_boundary_in_their_order_both_ways(build: BuildSchedule, shape: tuple[int, int]) -> None:
    for row in build(*shape):
        for kind in "FB":
            assert [action.micro_batch for action in row if action.kind == kind] == list(range(shape[1]))


@each_schedule
@given(shape=shapes)
def test_the_bubble_is_s_minus_1_over_m_plus_s_minus_1_of_the_step(build: BuildSchedule, shape: tuple[int, int]) -> None:
    num_stages, num_micro_batches = shape
    assert max(slot.end for slot in timeline(build(*shape))) == 3 * (num_micro_batches + num_stages - 1)


@given(shapes)
def test_gpipe_keeps_all_micro_batches_and_1f1b_at_most_one_per_stage_still_ahead(shape: tuple[int, int]) -> None:
    num_stages, num_micro_batches = shape
    assert [in_flight(row) for row in gpipe(*shape)] == [num_micro_batches] * num_stages
    assert [in_flight(row) for row in one_f_one_b(*shape)] == [
        min(num_stages - stage, num_micro_batches) for stage in range(num_stages)
    ]


def test_1f1b_of_two_stages_and_three_micro_batches_reads_as_in_the_paper() -> None:
    rows = ["".join(f"{action.kind}{action.micro_batch}" for action in row) for row in one_f_one_b(2, 3)]
    assert rows == ["F0F1B0F2B1B2", "F0B0F1B1F2B2"]


def test_rows_that_wait_for_one_another_are_a_deadlock() -> None:
    backward_first = ((Action(0, "B", 0), Action(0, "F", 0)), (Action(1, "F", 0), Action(1, "B", 0)))
    with pytest.raises(ValueError, match="deadlock after 0 actions"):
        timeline(backward_first)


def test_layers_go_to_stages_in_order_with_the_longer_stages_first() -> None:
    assert stage_layers(6, 4) == (range(2), range(2, 4), range(4, 5), range(5, 6))
    assert stage_layers(2, 2) == (range(1), range(1, 2))


@pytest.mark.parametrize("num_stages", [0, 3])
def test_a_stage_without_a_layer_is_refused(num_stages: int) -> None:
    with pytest.raises(ValueError, match=f"num_stages = {num_stages}"):
        stage_layers(2, num_stages)


@each_schedule
@pytest.mark.parametrize("shape", [(0, 1), (1, 0)])
def test_a_pipeline_without_stages_or_micro_batches_is_refused(build: BuildSchedule, shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="must be at least 1"):
        build(*shape)
