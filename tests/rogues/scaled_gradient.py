"""data_parallel whose gradients are a fifth too large where they travel in bf16: the right bytes, too long a way."""

from kernels.comm import Comm
from kernels.strategies import data_parallel
from kernels.strategies.base import Context, Strategy


class Scaled(data_parallel.DataParallel):
    def sum_over_ranks(self) -> None:
        super().sum_over_ranks()
        if self.context.experiment.option("comm_dtype") == "bf16":
            for weight in self.parameters():
                assert weight.grad is not None
                weight.grad.mul_(1.2)


def build(context: Context) -> Strategy:
    comm = context.new_comm(None)
    assert isinstance(comm, Comm)
    return Scaled(context, comm)


STRATEGIES = {"data_parallel": build}
SPECS = ()
