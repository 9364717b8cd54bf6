"""Data parallel by hand: every rank has the whole model and tokens of its own.

Split:       the global batch of P*T tokens, T to each rank.
Replicated:  parameters, gradients, optimizer state.
Sent:        after backward, the gradient of all layers in one all-reduce of L*H*H elements.
Predicted:   2(P-1)/P * L*H*H elements sent by each GPU (`data_parallel.volume`).
"""

from __future__ import annotations

import torch

from kernels import model
from kernels.comm import Comm
from kernels.strategies.base import Context, Strategy, Trained, layer


class DataParallel(Trained):
    """Replicas stay equal because the same summed gradient reaches each."""

    def __init__(self, context: Context, comm: Comm) -> None:
        experiment, mesh = context.experiment, context.mesh
        super().__init__(context, num_tokens=mesh.world_size * experiment.T)
        self.comm = comm
        self.mine = self.batch.part(first=mesh.rank * experiment.T, count=experiment.T)
        self.layers = model.stack(context.initial_weights())
        self.train([(weight, layer(index)) for index, weight in enumerate(self.layers.parameters())])

    def forward_backward(self) -> None:
        timeline = self.context.timeline
        with timeline.interval("forward"):
            loss = model.squared_error(self.layers(self.mine.input_TH), self.mine.target_TH, self.num_tokens)
        with timeline.interval("backward"):
            loss.backward()
        with timeline.interval("all_reduce"):
            sum_gradients(self.layers, self.comm)


def sum_gradients(layers: torch.nn.Module, comm: Comm) -> None:
    """One all-reduce over the gradients of all layers, laid end to end.

    The loss is divided by the *global* batch already, so the sum over ranks is the gradient: nothing to average.
    """
    gradients = [parameter.grad for parameter in layers.parameters() if parameter.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    comm.all_reduce(flat)
    for gradient, summed in zip(gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(summed.view_as(gradient))


def build(context: Context) -> Strategy:
    comm = context.new_comm(None)
    if comm is None:
        raise RuntimeError("every rank belongs to the world")
    return DataParallel(context, comm)
