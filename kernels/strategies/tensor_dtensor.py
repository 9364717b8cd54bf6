"""Tensor parallel by the library: DTensor's column and row split around the single-device model.

Split:       each H x H weight, over all P GPUs; P divides H.
Replicated:  the T x H activations between pairs of layers.
Sent:        each pair of layers: one all-reduce of T*H forward, one backward.
Predicted:   L * V_ring(T*H, P) elements sent by each GPU (`tensor_parallel.megatron_volume`).
"""

from __future__ import annotations

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module

from kernels import model
from kernels.shards import in_pair, own_slice
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
        mine = own_slice(context.experiment.H, context.world_comm())
        self.train([(weight, in_pair(index, mine)) for index, weight in enumerate(self.layers.parameters())])


def build(context: Context) -> Strategy:
    return DTensorPairs(context)
