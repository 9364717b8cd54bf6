"""Sum or mean: what DDP makes of the loss's gradient, beside one process with the whole batch.

Split:       four tokens x = -1, 2, -3, 4 (targets 0), equally many to each rank; the model is y = w x with w = 1.
Replicated:  the one weight.
Sent:        its gradient, one element, in one all-reduce.
Predicted:   2(P-1)/P elements sent by each GPU (`collectives.ring_all_reduce` of 1 element). The gradient of the summed loss
             is 60 in one process; DDP averages over ranks and gives 60/P (`batch.averaged_gradient`). The mean's is 15 in both.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from kernels import model
from kernels.spec import LOSS_TOKENS
from kernels.strategies.base import Context, Strategy


class LossReduction:
    """The first gradient is kept as measured; after that the weight is trained like any other."""

    def __init__(self, context: Context) -> None:
        mesh = context.mesh
        self.context = context
        self.whole = torch.tensor(LOSS_TOKENS, dtype=context.dtype, device=mesh.device)[:, None]
        self.mine = self.whole.chunk(mesh.world_size)[mesh.rank]
        self.linear = model.linear(torch.ones(1, 1, dtype=context.dtype, device=mesh.device))
        self.replica = DistributedDataParallel(self.linear)
        self._optimizer = torch.optim.SGD(self.linear.parameters(), lr=model.LEARNING_RATE)
        self.first_gradient: float | None = None
        self.steps = 0

    def step(self) -> None:
        self._optimizer.zero_grad()
        self.loss(self.replica, self.mine).backward()
        if self.first_gradient is None:
            self.first_gradient = gradient_of(self.linear)
        self._optimizer.step()
        self.steps += 1

    def loss(self, layers: nn.Module, input_T1: Tensor) -> Tensor:
        squares: Tensor = layers(input_T1).square()
        return squares.sum() if self.context.experiment.option("loss") == "sum" else squares.mean()

    def values(self) -> dict[str, float]:
        """The gradient at w = 1: of one process that has all tokens, and of DDP."""
        alone = model.linear(torch.ones_like(self.linear.weight))
        self.loss(alone, self.whole).backward()
        return {"gradient_of_one_process": gradient_of(alone), "gradient_of_ddp": self.first_gradient or 0.0}

    def check(self) -> float:
        """Difference from one process that trains on the loss DDP follows in effect: the *mean over ranks* of the losses.

        That is the whole batch's loss where each rank takes its mean, and 1/P of it where each takes its sum.
        """
        shrunk_by = self.context.mesh.world_size if self.context.experiment.option("loss") == "sum" else 1
        alone = model.linear(torch.ones_like(self.linear.weight))
        optimizer = torch.optim.SGD(alone.parameters(), lr=model.LEARNING_RATE)
        for _ in range(self.steps):
            optimizer.zero_grad()
            (self.loss(alone, self.whole) / shrunk_by).backward()
            optimizer.step()
        return float((alone.weight - self.linear.weight).abs().max())

    def parameters(self) -> list[Tensor]:
        return list(self.linear.parameters())

    def optimizer(self) -> torch.optim.Optimizer:
        return self._optimizer


def gradient_of(linear: nn.Linear) -> float:
    """Of its one weight."""
    gradient = linear.weight.grad
    if gradient is None:
        raise RuntimeError("backward has not run")
    return float(gradient)


def build(context: Context) -> Strategy:
    return LossReduction(context)
