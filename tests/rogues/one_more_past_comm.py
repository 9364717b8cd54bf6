"""data_parallel that sends one element too many straight through torch.distributed, where kernels.comm cannot see it."""

import torch
import torch.distributed as dist

from kernels.strategies.base import Context
from tests.rogues.wrapped import data_parallel_and


def send_one_element(context: Context) -> None:
    element = torch.zeros(1, dtype=context.dtype)
    if context.mesh.rank == 0:
        dist.send(element, dst=1)
    elif context.mesh.rank == 1:
        dist.recv(element, src=0)


STRATEGIES = {"data_parallel": data_parallel_and(send_one_element)}
SPECS = ()
