"""What every strategy is given and what it offers; the single process that all of them must agree with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from kernels import data, model
from kernels.comm import Comm
from kernels.mesh import Mesh
from kernels.meters.timeline import Timeline
from kernels.shards import Cut
from kernels.spec import Experiment


@dataclass(frozen=True)
class Context:
    """All that a strategy may know. `new_comm(ranks)` is called by every rank; it is None on ranks that are not among them.

    `ranks` None means the whole world. Groups are kept for the launch: asking again for the same ranks gives the same one.
    """

    mesh: Mesh
    experiment: Experiment
    dtype: torch.dtype
    seed: int
    timeline: Timeline
    new_comm: Callable[[Sequence[int] | None], Comm | None]

    def world_comm(self) -> Comm:
        """The group of every rank."""
        comm = self.new_comm(None)
        if comm is None:
            raise RuntimeError("every rank belongs to the world")
        return comm

    def initial_weights(self) -> list[Tensor]:
        """The L weights of the whole model, the same on every rank."""
        weights = model.initial_weights(self.experiment.L, self.experiment.H, self.seed, self.dtype)
        return [weight.to(self.mesh.device) for weight in weights]

    def global_batch(self, num_tokens: int) -> data.Batch:
        """The tokens of one optimizer step, the same on every rank."""
        return data.global_batch(num_tokens, self.experiment.H, self.seed, self.dtype).to(self.mesh.device)


class Strategy(Protocol):
    """One way to train the toy model on the ranks of the world."""

    def step(self) -> None:
        """One whole optimizer step (of ring_all_reduce: one collective)."""

    def check(self) -> float:
        """Largest difference between this rank's weights and those of one process after as many steps."""

    def parameters(self) -> list[Tensor]:
        """What this rank trains."""

    def optimizer(self) -> torch.optim.Optimizer | None:
        """Whose state this rank holds; None on a rank that trains nothing."""


@runtime_checkable
class Measures(Protocol):
    """A strategy that measures more than bytes, time and memory."""

    def values(self) -> dict[str, float]:
        """By name, in words that a report can show."""


class Trained:
    """Shared by the strategies that train with SGD: counts steps and compares weights with the single process.

    `pieces` pairs each parameter with a function that cuts the matching piece out of the L whole weights. `layers` is set by
    the strategy, on ranks that have any.
    """

    layers: nn.Module

    def __init__(self, context: Context, num_tokens: int) -> None:
        self.context = context
        self.batch = context.global_batch(num_tokens)
        self.num_tokens = num_tokens
        self.steps = 0
        self.pieces: list[tuple[Tensor, Cut]] = []
        self._optimizer: torch.optim.Optimizer | None = None

    def train(self, pieces: list[tuple[Tensor, Cut]]) -> None:
        """Name what this rank trains; an idle rank passes nothing."""
        self.pieces = pieces
        self._optimizer = torch.optim.SGD(self.parameters(), lr=model.LEARNING_RATE) if pieces else None

    def step(self) -> None:
        self.steps += 1
        if self._optimizer is None:
            return
        self._optimizer.zero_grad()
        self.forward_backward()
        with self.context.timeline.interval("optimizer"):
            self._optimizer.step()

    def forward_backward(self) -> None:
        """Leave in every parameter's .grad the gradient of the whole global batch.

        Written as for one process: what is sent, the layers send, unless a strategy has more to say.
        """
        with self.context.timeline.interval("forward"):
            loss = model.squared_error(self.layers(self.batch.input_TH), self.batch.target_TH, self.num_tokens)
        with self.context.timeline.interval("backward"):
            loss.backward()

    def check(self) -> float:
        whole = single_process_weights(self.context, self.num_tokens, self.steps)
        return largest(_max_difference(parameter, cut(whole)) for parameter, cut in self.pieces)

    def way(self) -> float:
        """How far the single process's weights have gone in as many steps: the largest change of any."""
        whole = single_process_weights(self.context, self.num_tokens, self.steps)
        return largest(_max_difference(end, start) for end, start in zip(whole, self.context.initial_weights(), strict=True))

    def parameters(self) -> list[Tensor]:
        return [parameter for parameter, _ in self.pieces]

    def optimizer(self) -> torch.optim.Optimizer | None:
        return self._optimizer


def single_process_weights(context: Context, num_tokens: int, steps: int) -> list[Tensor]:
    """The L weights after `steps` SGD steps on the whole batch in this process alone."""
    layers = model.stack(context.initial_weights())
    optimizer = torch.optim.SGD(layers.parameters(), lr=model.LEARNING_RATE)
    batch = context.global_batch(num_tokens)
    for _ in range(steps):
        optimizer.zero_grad()
        model.squared_error(layers(batch.input_TH), batch.target_TH, num_tokens).backward()
        optimizer.step()
    return [parameter.detach() for parameter in layers.parameters()]


def largest(differences: Iterable[float]) -> float:
    """The largest one, and NaN if any is: `max` alone would pass over a NaN that is not the first."""
    return max(differences, key=lambda difference: (math.isnan(difference), difference), default=0.0)


def _max_difference(parameter: Tensor, expected: Tensor) -> float:
    to_local = getattr(parameter, "to_local", None)
    mine = parameter.detach() if to_local is None else to_local().detach()
    if mine.shape != expected.shape:
        raise ValueError(f"this rank trains a piece of shape {tuple(mine.shape)}, expected {tuple(expected.shape)}")
    return float((mine - expected).abs().max()) if mine.numel() else 0.0
