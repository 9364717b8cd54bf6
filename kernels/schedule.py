"""Who sends or computes what at each step, as data: plans of collectives, buckets of gradients, schedules of pipelines.

`kernels.ring` and the strategies execute these lists, figures draw them, formulas count them. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

# --- Collectives -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Transfer:
    """One message. The receiver adds the chunk to its own where `reduces`, and otherwise keeps it as it came."""

    sender: int
    receiver: int
    chunk: int
    reduces: bool


Step = tuple[Transfer, ...]  # messages under way at the same time


@dataclass(frozen=True)
class Plan:
    """A collective: every rank's buffer is cut into `num_chunks`, then the steps follow one another."""

    world_size: int
    num_chunks: int
    steps: tuple[Step, ...]

    def __add__(self, then: Plan) -> Plan:
        """This plan, then another one over the same chunks."""
        if (self.world_size, self.num_chunks) != (then.world_size, then.num_chunks):
            raise ValueError(f"plans of different shape: {self.world_size} ranks and {self.num_chunks} chunks, "
                             f"then {then.world_size} and {then.num_chunks}")
        return Plan(self.world_size, self.num_chunks, self.steps + then.steps)


def chunk_sizes(num_elements: int, num_chunks: int) -> tuple[int, ...]:
    """Elements of each chunk of a balanced cut: s // n, and one more for the first s % n chunks (some are empty if s < n)."""
    if num_elements < 0 or num_chunks < 1:
        raise ValueError(f"num_elements = {num_elements}, num_chunks = {num_chunks}: must be at least 0 and 1")
    shortest, longer = divmod(num_elements, num_chunks)
    return tuple(shortest + (chunk < longer) for chunk in range(num_chunks))


def chunk_bounds(num_elements: int, num_chunks: int) -> tuple[tuple[int, int], ...]:
    """First element and the one after the last of each chunk of a balanced cut."""
    bounds, start = [], 0
    for size in chunk_sizes(num_elements, num_chunks):
        bounds.append((start, start + size))
        start += size
    return tuple(bounds)


def elements_sent(plan: Plan, num_elements: int) -> tuple[int, ...]:
    """Elements each rank sends when `plan` runs on buffers of `num_elements`; exact for every length."""
    return elements_sent_so_far(plan, num_elements)[-1]


def elements_sent_so_far(plan: Plan, num_elements: int) -> tuple[tuple[int, ...], ...]:
    """Elements each rank has sent before the first step and after each one: row k is what counts after k steps."""
    sizes = chunk_sizes(num_elements, plan.num_chunks)
    sent = [0] * plan.world_size
    rows = [tuple(sent)]
    for step in plan.steps:
        for transfer in step:
            sent[transfer.sender] += sizes[transfer.chunk]
        rows.append(tuple(sent))
    return tuple(rows)


def ring_reduce_scatter(world_size: int, shift: int = 0) -> Plan:
    """Reduce-scatter on a ring: P - 1 steps, after which rank r holds the sum of chunk (r + shift) mod P.

    In step k rank r sends chunk (r + shift - 1 - k) mod P to rank r + 1, which adds it to its own: a chunk travels round
    the ring and collects one contribution at each stop. Rank r sends every chunk but the one it ends with.
    Source: Patarasuk & Yuan 2009, doi 10.1016/j.jpdc.2008.09.002.
    """
    return _ring(world_size, first_chunk=shift - 1, reduces=True)


def ring_all_gather(world_size: int, shift: int = 0) -> Plan:
    """All-gather on a ring: rank r starts with chunk (r + shift) mod P and has all of them after P - 1 steps.

    In step k rank r sends chunk (r + shift - k) mod P to rank r + 1: first its own, then whatever arrived last.
    """
    return _ring(world_size, first_chunk=shift, reduces=False)


def ring_all_reduce(world_size: int) -> Plan:
    """All-reduce on a ring: reduce-scatter, then all-gather; 2 (P - 1) steps and 2 (P - 1) s elements in all.

    In step k of the first half rank r sends chunk (r - k) mod P, so that it ends with chunk (r + 1) mod P: the second half
    starts from there.
    """
    return ring_reduce_scatter(world_size, shift=1) + ring_all_gather(world_size, shift=1)


def _ring(world_size: int, first_chunk: int, reduces: bool) -> Plan:
    """P - 1 steps; in step k each rank r sends chunk (r + first_chunk - k) mod P to its right-hand neighbour."""
    _require_ranks(world_size)
    return Plan(world_size, world_size, tuple(
        tuple(
            Transfer(rank, (rank + 1) % world_size, (rank + first_chunk - step) % world_size, reduces)
            for rank in range(world_size)
        )
        for step in range(world_size - 1)
    ))


def tree_broadcast(world_size: int) -> Plan:
    """Broadcast from rank 0 along a binomial tree: every rank that has the buffer passes it on, ceil(log2 P) steps.

    After step k the first 2^(k + 1) ranks have it. The whole buffer is one chunk; rank 0 sends it in every step.
    """
    _require_ranks(world_size)
    steps, holders = [], 1
    while holders < world_size:
        reached = min(2 * holders, world_size)
        steps.append(tuple(Transfer(receiver - holders, receiver, 0, reduces=False) for receiver in range(holders, reached)))
        holders = reached
    return Plan(world_size, 1, tuple(steps))


def pairwise_all_to_all(world_size: int) -> Plan:
    """All-to-all in P - 1 steps: in step k rank r sends its chunk (r + k) mod P to the rank of that number.

    The chunk is numbered as the sender cuts it; the receiver files it under the sender's rank.
    """
    _require_ranks(world_size)
    return Plan(world_size, world_size, tuple(
        tuple(
            Transfer(rank, (rank + distance) % world_size, (rank + distance) % world_size, reduces=False)
            for rank in range(world_size)
        )
        for distance in range(1, world_size)
    ))


def send_to_next(world_size: int) -> Plan:
    """One message: rank 0 sends its whole buffer to rank 1. Alone, it sends nothing."""
    _require_ranks(world_size)
    message = Transfer(sender=0, receiver=1, chunk=0, reduces=False)
    return Plan(world_size, 1, ((message,),) if world_size > 1 else ())


COLLECTIVE_PLANS: dict[str, Callable[[int], Plan]] = {
    "all_reduce": ring_all_reduce,
    "reduce_scatter": ring_reduce_scatter,
    "all_gather": ring_all_gather,
    "broadcast": tree_broadcast,
    "all_to_all": pairwise_all_to_all,
    "send_recv": send_to_next,
}


def _require_ranks(world_size: int) -> None:
    if world_size < 1:
        raise ValueError(f"world_size = {world_size}: must be at least 1")


# --- Gradients -------------------------------------------------------------------------------------------------------

MIB = 2**20
DDP_FIRST_BUCKET_BYTES, DDP_BUCKET_BYTES = 1 * MIB, 25 * MIB


@dataclass(frozen=True)
class Bucket:
    """Gradients that one all-reduce carries: the parameters' positions in the model, and the sizes added up."""

    parameters: tuple[int, ...]
    size: int


def fill_buckets(sizes: Sequence[int], limits: Sequence[int]) -> tuple[Bucket, ...]:
    """Buckets of parameters of these sizes, last parameter first, as backward finishes their gradients.

    A bucket is closed as soon as it holds its limit or more; a parameter is never split, so it may hold much
    more. The first bucket has the first limit, the second the second, all further ones the last. Sizes and limits
    in one unit. torch's DistributedDataParallel fills its buckets so: limits of 1 and 25 MiB, or one for all where
    it is given any (torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size).
    """
    if not limits or min(limits) < 1 or min(sizes, default=0) < 0:
        raise ValueError(f"limits = {list(limits)}: give at least one, each 1 or more, and sizes of 0 or more")
    buckets: list[Bucket] = []
    inside: list[int] = []
    size = 0
    for parameter in reversed(range(len(sizes))):
        inside.append(parameter)
        size += sizes[parameter]
        if size >= limits[min(len(buckets), len(limits) - 1)]:
            buckets.append(Bucket(tuple(inside), size))
            inside, size = [], 0
    if inside:
        buckets.append(Bucket(tuple(inside), size))
    return tuple(buckets)


def gradient_buckets(num_layers: int, layer_bytes: int, sync: str, bucket_bytes: int) -> tuple[Bucket, ...]:
    """Which of these equal layers share an all-reduce: all of them ("flat"), none ("per_parameter"), or those that fill a
    bucket ("bucketed"). Bytes of fp32, whatever is computed or sent in.
    """
    limits = {"flat": num_layers * layer_bytes, "per_parameter": 1, "bucketed": bucket_bytes}
    return fill_buckets([layer_bytes] * num_layers, [limits[sync]])


# --- Pipelines -------------------------------------------------------------------------------------------------------

Kind = Literal["F", "B"]


@dataclass(frozen=True)
class Action:
    """One stage's forward ("F") or backward ("B") pass of one micro-batch."""

    stage: int
    kind: Kind
    micro_batch: int


Schedule = tuple[tuple[Action, ...], ...]  # one row a stage: its actions in the order in which it does them


def gpipe(num_stages: int, num_micro_batches: int) -> Schedule:
    """All forwards, then all backwards: a stage keeps the activations of all m micro-batches.

    Backwards run in the order of the forwards, as torch's ScheduleGPipe does. Source: Huang et al. 2019, arXiv 1811.06965.
    """
    _require_pipeline(num_stages, num_micro_batches)
    return tuple(
        tuple(Action(stage, kind, micro_batch) for kind in _KINDS for micro_batch in range(num_micro_batches))
        for stage in range(num_stages)
    )


def one_f_one_b(num_stages: int, num_micro_batches: int) -> Schedule:
    """Each stage runs ahead by S - 1 - stage forwards, then does one forward and one backward in turn, then drains.

    Stage s keeps the activations of at most S - s micro-batches, however many there are. Works for any m, m < S included.
    Source: Narayanan et al. 2021, arXiv 2104.04473, section 2.2.
    """
    _require_pipeline(num_stages, num_micro_batches)
    return tuple(_one_f_one_b_row(stage, num_stages, num_micro_batches) for stage in range(num_stages))


def _one_f_one_b_row(stage: int, num_stages: int, num_micro_batches: int) -> tuple[Action, ...]:
    ahead = min(num_stages - 1 - stage, num_micro_batches)
    row = [Action(stage, "F", micro_batch) for micro_batch in range(ahead)]
    for micro_batch in range(num_micro_batches):
        if micro_batch + ahead < num_micro_batches:
            row.append(Action(stage, "F", micro_batch + ahead))
        row.append(Action(stage, "B", micro_batch))
    return tuple(row)


PIPELINE_SCHEDULES: dict[str, Callable[[int, int], Schedule]] = {"gpipe": gpipe, "1f1b": one_f_one_b}


def stage_layers(num_layers: int, num_stages: int) -> tuple[range, ...]:
    """The layers of each stage, contiguous and balanced: 6 layers on 4 stages are 2, 2, 1, 1."""
    if not 1 <= num_stages <= num_layers:
        raise ValueError(f"num_stages = {num_stages}: must be from 1 to num_layers = {num_layers}, a layer a stage at least")
    return tuple(range(start, stop) for start, stop in chunk_bounds(num_layers, num_stages))


@dataclass(frozen=True)
class Slot:
    """An action and when it runs, in units of one forward pass."""

    action: Action
    start: int
    end: int


def timeline(schedule: Schedule, forward: int = 1, backward: int = 2) -> tuple[Slot, ...]:
    """Every action at the earliest time its stage is free and what it waits for has arrived; sorted by start, then stage.

    A forward waits for the stage before, a backward for the stage after and for its own forward; messages take no time.
    Raises ValueError where the rows wait for one another for ever.
    """
    duration = {"F": forward, "B": backward}
    ended: dict[Action, int] = {}
    slots: list[Slot] = []
    position, free_at = [0] * len(schedule), [0] * len(schedule)
    while len(slots) < sum(len(row) for row in schedule):
        ready = [
            row[position[stage]] for stage, row in enumerate(schedule)
            if position[stage] < len(row) and all(needed in ended for needed in waits_for(row[position[stage]], len(schedule)))
        ]
        if not ready:
            raise ValueError(f"deadlock after {len(slots)} actions: every stage waits for another one")
        for action in ready:
            arrived = max((ended[needed] for needed in waits_for(action, len(schedule))), default=0)
            start = max(free_at[action.stage], arrived)
            ended[action] = free_at[action.stage] = start + duration[action.kind]
            slots.append(Slot(action, start, ended[action]))
            position[action.stage] += 1
    return tuple(sorted(slots, key=lambda slot: (slot.start, slot.action.stage)))


def waits_for(action: Action, num_stages: int) -> tuple[Action, ...]:
    """The actions whose results this one needs."""
    if action.kind == "F":
        return (Action(action.stage - 1, "F", action.micro_batch),) if action.stage > 0 else ()
    own = Action(action.stage, "F", action.micro_batch)
    last = action.stage == num_stages - 1
    return (own,) if last else (own, Action(action.stage + 1, "B", action.micro_batch))


_KINDS: tuple[Kind, ...] = ("F", "B")


def _require_pipeline(num_stages: int, num_micro_batches: int) -> None:
    if num_stages < 1 or num_micro_batches < 1:
        raise ValueError(f"num_stages = {num_stages}, num_micro_batches = {num_micro_batches}: each must be at least 1")
