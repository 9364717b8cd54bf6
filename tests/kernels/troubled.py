"""A strategy whose ranks find the disk full or raise at length; for a launch host's --extra-strategies."""

from __future__ import annotations

import errno
import os

from kernels.spec import Choice, StrategySpec
from kernels.strategies import single
from kernels.strategies.base import Context, Strategy


def find_the_disk_full() -> None:
    """What a log on a full disk answers, and so does every other file there."""
    full = os.open("/dev/full", os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(full, stream)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def raise_beyond_the_bmp() -> None:
    """Letters that take 12 bytes each in JSON."""
    raise ValueError("\N{GRINNING FACE}" * 500)


TROUBLES = {"full disk": find_the_disk_full, "long words": raise_beyond_the_bmp}


def build(context: Context) -> Strategy:
    if context.mesh.rank == 1:
        TROUBLES[str(context.experiment.option("trouble"))]()
    return single.build(context)


SPECS = [StrategySpec("troubled", "Troubled", "none", "Goes wrong.", options=(Choice("trouble", "which", tuple(TROUBLES)),))]
STRATEGIES = {"troubled": build}
