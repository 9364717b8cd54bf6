"""data_parallel that sends 4,000 bytes too many on every second step: what most readings say is what was promised."""

from itertools import count

import torch
import torch.distributed as dist

from kernels.strategies.base import Context
from tests.rogues.wrapped import data_parallel_and

STEPS = count()


def send_on_every_other_step(context: Context) -> None:
    message = torch.zeros(1000, dtype=context.dtype)
    if next(STEPS) % 2 == 0:
        if context.mesh.rank == 0:
            dist.send(message, dst=1)
        elif context.mesh.rank == 1:
            dist.recv(message, src=0)


STRATEGIES = {"data_parallel": data_parallel_and(send_on_every_other_step)}
SPECS = ()
