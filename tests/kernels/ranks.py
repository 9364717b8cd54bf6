"""Runs a function on several gloo ranks of this machine, without a launcher: one process a rank, joined over 127.0.0.1."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from kernels.comm import Calls, Comm
from kernels.mesh import Mesh
from kernels.meters.timeline import Timeline
from kernels.spec import Experiment
from kernels.strategies.base import Context

PATIENCE_SECONDS = 300  # of a rank that hangs: on a busy machine one that works may take a minute

# The fork server imports torch once, and never runs it: ranks forked from it start clean and at once.
_ranks = multiprocessing.get_context("forkserver")
_ranks.set_forkserver_preload(["torch", "torch.distributed"])


class World:
    """One rank's view: what a strategy needs of its surroundings, and the calls it made."""

    def __init__(self, rank: int, world_size: int) -> None:
        self.rank = rank
        self.world_size = world_size
        self.calls = Calls()
        self._comms: dict[tuple[int, ...], Comm | None] = {}

    def comm(self, ranks: Sequence[int] | None = None) -> Comm | None:
        """The same as Context.new_comm; called by every rank."""
        members = tuple(range(self.world_size) if ranks is None else ranks)
        if members not in self._comms:
            group = dist.new_group(list(members))
            self._comms[members] = Comm(group, self.calls) if self.rank in members else None
        return self._comms[members]

    def context(self, experiment: Experiment, dtype: torch.dtype = torch.float64) -> Context:
        mesh = Mesh(self.rank, self.world_size, torch.device("cpu"))
        return Context(mesh, experiment, dtype, seed=0, timeline=Timeline(self.rank), new_comm=self.comm)


def run_on_ranks(world_size: int, function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """function(World, *arguments) on each rank, all in step; what each returned, by rank. A rank's exception is raised here."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=PATIENCE_SECONDS))
    with ProcessPoolExecutor(world_size, mp_context=_ranks) as pool:
        ranks = [pool.submit(_run_rank, rank, world_size, store.port, function, arguments) for rank in range(world_size)]
        return [rank.result(PATIENCE_SECONDS) for rank in ranks]


def _run_rank(rank: int, world_size: int, port: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    torch.set_num_threads(1)
    patience = timedelta(seconds=PATIENCE_SECONDS)
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=patience)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size, timeout=patience)
    try:
        return function(World(rank, world_size), *arguments)
    finally:
        dist.destroy_process_group()
