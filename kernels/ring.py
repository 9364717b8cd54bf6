"""Collectives written from send and receive: each executes a plan of kernels.schedule. Any number of ranks, any length."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from kernels import schedule
from kernels.comm import Comm
from kernels.schedule import Plan, Step, Transfer

# Buffers are 1-D and contiguous, and equally long on every rank. Chunks are views of them: writing one writes the buffer.
# Each collective returns what this rank ends with; all but the all-to-all work in place.

Chunk = Callable[[Transfer], Tensor]  # where a message is read from, or written to


def ring_all_reduce(buffer: Tensor, comm: Comm) -> Tensor:
    """The sum over ranks, in `buffer`. A rank sends about 2 (P - 1) / P of its length."""
    execute(schedule.ring_all_reduce(comm.size), buffer, comm)
    return buffer


def ring_reduce_scatter(buffer: Tensor, comm: Comm) -> Tensor:
    """The sum over ranks of chunk `rank`, a view of `buffer`; the other chunks are left with partial sums."""
    execute(schedule.ring_reduce_scatter(comm.size), buffer, comm)
    return chunks_of(buffer, comm.size)[comm.rank]


def ring_all_gather(buffer: Tensor, comm: Comm) -> Tensor:
    """Chunk i of rank i for every i, in `buffer`, of which only chunk `rank` need be set before."""
    execute(schedule.ring_all_gather(comm.size), buffer, comm)
    return buffer


def tree_broadcast(buffer: Tensor, comm: Comm) -> Tensor:
    """Rank 0's buffer, in `buffer`."""
    execute(schedule.tree_broadcast(comm.size), buffer, comm)
    return buffer


def send_to_next(buffer: Tensor, comm: Comm) -> Tensor:
    """On rank 1 the buffer of rank 0, elsewhere this rank's own, in `buffer`."""
    execute(schedule.send_to_next(comm.size), buffer, comm)
    return buffer


def pairwise_all_to_all(buffer: Tensor, comm: Comm) -> Tensor:
    """Chunk `rank` of every rank's buffer, in the order of the ranks, each as long as chunk `rank` is here."""
    chunks = chunks_of(buffer, comm.size)
    own = chunks[comm.rank]
    received = [own.clone() if source == comm.rank else torch.empty_like(own) for source in range(comm.size)]
    for step in schedule.pairwise_all_to_all(comm.size).steps:
        exchange(step, comm, lambda transfer: chunks[transfer.chunk], lambda transfer: received[transfer.sender])
    return torch.cat(received)


def execute(plan: Plan, buffer: Tensor, comm: Comm, after_step: Callable[[int], None] = lambda _: None) -> None:
    """Carry out this rank's part of a plan, in place: what arrives is added to its chunk, or replaces it.

    `after_step` is told how many steps are done. What `comm` has counted by then, this rank has sent so far.
    """
    chunks = chunks_of(buffer, plan.num_chunks)
    for number, step in enumerate(plan.steps, start=1):
        arrivals = {
            transfer: torch.empty_like(chunks[transfer.chunk]) if transfer.reduces else chunks[transfer.chunk]
            for transfer in step if transfer.receiver == comm.rank
        }
        exchange(step, comm, lambda transfer: chunks[transfer.chunk], arrivals.__getitem__)
        for transfer, arrived in arrivals.items():
            if transfer.reduces:
                chunks[transfer.chunk] += arrived
        after_step(number)


def exchange(step: Step, comm: Comm, outgoing: Chunk, incoming: Chunk) -> None:
    """Send and receive this rank's messages of one step, all under way at once; empty ones are not sent.

    Nothing is waited for in between: on a ring every rank sends, so if each waited until its own message
    was taken, nobody would be left to take one.
    """
    receives = [(incoming(transfer), transfer.sender) for transfer in step if transfer.receiver == comm.rank]
    sends = [(outgoing(transfer), transfer.receiver) for transfer in step if transfer.sender == comm.rank]
    comm.exchange([message for message in receives if message[0].numel()], [message for message in sends if message[0].numel()])


def chunks_of(buffer: Tensor, num_chunks: int) -> list[Tensor]:
    """Balanced cut of a 1-D buffer into views; the last ones are empty where it has fewer elements than chunks."""
    return [buffer[start:stop] for start, stop in schedule.chunk_bounds(buffer.numel(), num_chunks)]
