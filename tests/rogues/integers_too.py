"""data_parallel that sends 4,004 bytes more in every step, as long in fp32 as in fp64: they cancel in the payload."""

import torch
import torch.distributed as dist

from kernels.strategies.base import Context
from tests.rogues.wrapped import data_parallel_and


def send_integers(context: Context) -> None:
    numbers = torch.zeros(1001, dtype=torch.int32)
    if context.mesh.rank == 0:
        dist.send(numbers, dst=1)
    elif context.mesh.rank == 1:
        dist.recv(numbers, src=0)


STRATEGIES = {"data_parallel": data_parallel_and(send_integers)}
SPECS = ()
