"""send_recv in the wrong direction: the total is right, the sender is not."""

import torch

from kernels.comm import Comm
from kernels.strategies.base import Context, Strategy


class Backwards:
    """Rank 1 sends to rank 0."""

    def __init__(self, context: Context, comm: Comm) -> None:
        experiment = context.experiment
        self.comm = comm
        self.buffer = torch.zeros(experiment.L * experiment.H * experiment.H, dtype=context.dtype)

    def step(self) -> None:
        if self.comm.rank == 1:
            self.comm.send(self.buffer, to=0)
        elif self.comm.rank == 0:
            self.comm.receive(self.buffer, source=1)

    def check(self) -> float:
        return 0.0

    def parameters(self) -> list[torch.Tensor]:
        return []

    def optimizer(self) -> torch.optim.Optimizer | None:
        return None


def build(context: Context) -> Strategy:
    comm = context.new_comm(None)
    assert comm is not None
    return Backwards(context, comm)


STRATEGIES = {"ring_all_reduce": build}
SPECS = ()
