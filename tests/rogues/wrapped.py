"""A real strategy with something added after each step."""

from __future__ import annotations

from collections.abc import Callable

import torch

from kernels.strategies import data_parallel
from kernels.strategies.base import Context, Strategy


class Wrapped:
    """data_parallel, then `extra`; everything else is passed through."""

    def __init__(self, context: Context, extra: Callable[[Context], None]) -> None:
        self.context = context
        self.inner: Strategy = data_parallel.build(context)
        self.extra = extra

    def step(self) -> None:
        self.inner.step()
        self.extra(self.context)

    def check(self) -> float:
        return self.inner.check()

    def parameters(self) -> list[torch.Tensor]:
        return self.inner.parameters()

    def optimizer(self) -> torch.optim.Optimizer | None:
        return self.inner.optimizer()


def data_parallel_and(extra: Callable[[Context], None]) -> Callable[[Context], Strategy]:
    """A build function for data_parallel with `extra` after each step."""
    return lambda context: Wrapped(context, extra)
