"""data_parallel whose last rank meets an error after its first step."""

from kernels.strategies.base import Context
from tests.rogues.wrapped import data_parallel_and


def raise_on_the_last(context: Context) -> None:
    if context.mesh.rank == context.mesh.world_size - 1:
        raise ValueError("the shard of this rank is missing")


STRATEGIES = {"data_parallel": data_parallel_and(raise_on_the_last)}
SPECS = ()
