"""data_parallel that sends one element too many, through kernels.comm."""

import torch

from kernels.strategies.base import Context
from tests.rogues.wrapped import data_parallel_and


def send_one_element(context: Context) -> None:
    comm = context.new_comm(None)
    assert comm is not None
    element = torch.zeros(1, dtype=context.dtype)
    if comm.rank == 0:
        comm.send(element, to=1)
    elif comm.rank == 1:
        comm.receive(element, source=0)


STRATEGIES = {"data_parallel": data_parallel_and(send_one_element)}
SPECS = ()
