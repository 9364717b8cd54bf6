"""One collective on one buffer: written by hand from send and receive, or called in the library.

Split:       by hand, the buffer of s elements into P balanced chunks; the library cuts as it likes.
Replicated:  nothing; every rank has a buffer of its own, and what they end with is the collective's business.
Sent:        the one collective, `calls` times at each step.
Predicted:   `collectives.ring_all_reduce` and its neighbours; for the library's, what its backend is known to send.

The library wants equal shares in a reduce-scatter or an all-gather: there the buffer is padded with zeros to ceil(s/P)*P.
Its all-to-all takes uneven shares, so that one is cut as by hand. A broadcast starts at rank 0, a message goes from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from kernels import ring
from kernels.comm import Comm
from kernels.ring import chunks_of
from kernels.schedule import chunk_sizes
from kernels.strategies.base import Context


def library_all_reduce(buffer: Tensor, comm: Comm) -> Tensor:
    comm.all_reduce(buffer)
    return buffer


def library_reduce_scatter(buffer: Tensor, comm: Comm) -> Tensor:
    own = buffer.new_empty(buffer.numel() // comm.size)
    comm.reduce_scatter(own, buffer)
    return own


def library_all_gather(buffer: Tensor, comm: Comm) -> Tensor:
    gathered = torch.empty_like(buffer)
    comm.all_gather(gathered, chunks_of(buffer, comm.size)[comm.rank])
    return gathered


def library_broadcast(buffer: Tensor, comm: Comm) -> Tensor:
    comm.broadcast(buffer, source=0)
    return buffer


def library_all_to_all(buffer: Tensor, comm: Comm) -> Tensor:
    sizes = chunk_sizes(buffer.numel(), comm.size)
    own = sizes[comm.rank]
    received = buffer.new_empty(own * comm.size)
    comm.all_to_all(received, buffer, receive_sizes=[own] * comm.size, send_sizes=sizes)
    return received


def library_send_recv(buffer: Tensor, comm: Comm) -> Tensor:
    if comm.rank == 0 and comm.size > 1:
        comm.send(buffer, to=1)
    elif comm.rank == 1:
        comm.receive(buffer, source=0)
    return buffer


# By collective and implementation. Each may overwrite the buffer it is given; it returns what this rank ends with.
COLLECTIVE_CODE: dict[tuple[str, str], Callable[[Tensor, Comm], Tensor]] = {
    ("all_reduce", "ring"): ring.ring_all_reduce,
    ("all_reduce", "library"): library_all_reduce,
    ("reduce_scatter", "ring"): ring.ring_reduce_scatter,
    ("reduce_scatter", "library"): library_reduce_scatter,
    ("all_gather", "ring"): ring.ring_all_gather,
    ("all_gather", "library"): library_all_gather,
    ("broadcast", "ring"): ring.tree_broadcast,
    ("broadcast", "library"): library_broadcast,
    ("all_to_all", "ring"): ring.pairwise_all_to_all,
    ("all_to_all", "library"): library_all_to_all,
    ("send_recv", "ring"): ring.send_to_next,
    ("send_recv", "library"): library_send_recv,
}
NEEDS_EQUAL_SHARES = {("reduce_scatter", "library"), ("all_gather", "library")}

# What rank `rank` must end with, from the buffers of all ranks. Written without sending, so that it can judge both.
EXPECTED: dict[str, Callable[[Sequence[Tensor], int], Tensor]] = {
    "all_reduce": lambda buffers, rank: torch.stack(list(buffers)).sum(0),
    "reduce_scatter": lambda buffers, rank: chunks_of(torch.stack(list(buffers)).sum(0), len(buffers))[rank],
    "all_gather": lambda buffers, rank: torch.cat([chunks_of(buffer, len(buffers))[i] for i, buffer in enumerate(buffers)]),
    "broadcast": lambda buffers, rank: buffers[0],
    "all_to_all": lambda buffers, rank: torch.cat([chunks_of(buffer, len(buffers))[rank] for buffer in buffers]),
    "send_recv": lambda buffers, rank: buffers[0 if rank == 1 else rank],
}


class OneCollective:
    """The same buffer at every step, so that each step can be judged by itself."""

    def __init__(self, context: Context, comm: Comm) -> None:
        experiment = context.experiment
        self.context = context
        self.comm = comm
        self.collective = str(experiment.option("collective"))
        self.choice = (self.collective, str(experiment.option("implementation")))
        self.num_elements = int(experiment.option("elements")) or experiment.L * experiment.H * experiment.H
        self.calls = int(experiment.option("calls"))
        self.own = self.buffer_of(comm.rank)
        self.result: Tensor | None = None

    def buffer_of(self, rank: int) -> Tensor:
        """Small whole numbers, so that sums over ranks are exact in every dtype and in every order."""
        generator = torch.Generator().manual_seed(self.context.seed + rank)
        numbers = torch.randint(-8, 9, (self.num_elements,), generator=generator)
        buffer = numbers.to(device=self.context.mesh.device, dtype=self.context.dtype)
        if self.choice in NEEDS_EQUAL_SHARES:
            return functional.pad(buffer, (0, -self.num_elements % self.comm.size))
        return buffer

    def step(self) -> None:
        """Every call starts from the same numbers: copied before the first one, so that copying is no part of their time."""
        buffers = [self.own.clone() for _ in range(self.calls)]
        for buffer in buffers:
            with self.context.timeline.interval(self.collective):
                self.result = COLLECTIVE_CODE[self.choice](buffer, self.comm)

    def check(self) -> float:
        """Largest difference between what this rank ended with and what it should have; 0 before the first step."""
        if self.result is None:
            return 0.0
        expected = EXPECTED[self.collective]([self.buffer_of(rank) for rank in range(self.comm.size)], self.comm.rank)
        if self.result.shape != expected.shape:
            raise ValueError(f"{self.collective} left {tuple(self.result.shape)}, expected {tuple(expected.shape)}")
        return float((self.result - expected).abs().max()) if expected.numel() else 0.0

    def parameters(self) -> list[Tensor]:
        return []

    def optimizer(self) -> None:
        return None


def build(context: Context) -> OneCollective:
    return OneCollective(context, context.world_comm())
