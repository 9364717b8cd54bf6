"""data_parallel whose last rank waits for ever after its first step; then the time of the run is up."""

import signal

from kernels.strategies.base import Context
from tests.rogues.wrapped import data_parallel_and
from tests.runs.faulty_strategies import reach_the_time_limit


def hang_on_the_last(context: Context) -> None:
    while context.mesh.rank == context.mesh.world_size - 1:
        reach_the_time_limit()
        signal.pause()


STRATEGIES = {"data_parallel": data_parallel_and(hang_on_the_last)}
SPECS = ()
