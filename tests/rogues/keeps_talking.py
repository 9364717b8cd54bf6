"""data_parallel beside which ranks 0 and 1 never fall silent, on a group of their own."""

import threading
from datetime import timedelta

import torch
import torch.distributed as dist

from kernels.strategies import data_parallel
from kernels.strategies.base import Context, Strategy

GROUPS: list[dist.ProcessGroup] = []


def talk(rank: int) -> None:
    """Back and forth until the process ends."""
    word, group = torch.zeros(16), GROUPS[0]
    while True:
        if rank == 0:
            dist.send(word, dst=1, group=group)
            dist.recv(word, src=1, group=group)
        else:
            dist.recv(word, src=0, group=group)
            dist.send(word, dst=0, group=group)


def build(context: Context) -> Strategy:
    strategy = data_parallel.build(context)
    if not GROUPS:
        GROUPS.append(dist.new_group([0, 1], timeout=timedelta(seconds=30)))
        if context.mesh.rank < 2:
            threading.Thread(target=talk, args=(context.mesh.rank,), daemon=True).start()
    return strategy


STRATEGIES = {"data_parallel": build}
SPECS = ()
