"""Tensor parallel by the library: DTensor's column and row split around the single-device model.

Split:       each H x H weight, over all P GPUs; P divides H.
Replicated:  the T x H activations between pairs of layers.
Sent:        each pair of layers: one all-reduce of T*H forward, one backward.
Predicted:   L * V_ring(T*H, P) elements sent by each GPU (`tensor_parallel.megatron_volume`).
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module

from kernels import model
from kernels.strategies.base import Context, Strategy, Trained


class DTensorPairs(Trained):
    """Even layers are split by output features, odd ones by input features."""

    def __init__(self, context: Context) -> None:
        mesh = context.mesh
        super().__init__(context, num_tokens=context.experiment.T)
        plan: dict[str, ParallelStyle] = {
            str(index): RowwiseParallel() if index % 2 else ColwiseParallel() for index in range(context.experiment.L)
        }
        device_mesh = init_device_mesh(mesh.device.type, (mesh.world_size,))
        self.layers = parallelize_module(model.stack(context.initial_weights()), device_mesh, plan)
        self.batch.input_TH.requires_grad_()  # as in tensor_parallel: the first layer sends its input gradient too
        share = context.experiment.H // mesh.world_size
        mine = slice(mesh.rank * share, (mesh.rank + 1) * share)
        self.train([(weight, _cut(index, mine)) for index, weight in enumerate(self.layers.parameters())])

    def forward_backward(self) -> None:
        with self.context.timeline.interval("forward"):
            loss = model.squared_error(self.layers(self.batch.input_TH), self.batch.target_TH, self.num_tokens)
        with self.context.timeline.interval("backward"):
            loss.backward()


def _cut(index: int, mine: slice) -> Callable[[list[Tensor]], Tensor]:
    return lambda whole: whole[index][:, mine] if index % 2 else whole[index][mine, :]


def build(context: Context) -> Strategy:
    return DTensorPairs(context)
