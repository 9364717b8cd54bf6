"""Tensor parallel by Megatron-Core: its column-split and row-split layers in pairs, with the single-device weights.

Split:       each H x H weight, over all P GPUs; P divides H.
Replicated:  the T x H activations between pairs of layers.
Sent:        each pair of layers: one all-reduce of T*H forward, one backward.
Predicted:   L * V_ring(T*H, P) elements sent by each GPU (`tensor_parallel.megatron_volume`).

Only where megatron-core is installed (this project's extra `megatron`). Its sequence parallelism asks for a CUDA device.
"""

from __future__ import annotations

import importlib
import warnings
from types import ModuleType

import torch
from torch import Tensor, nn

from kernels.comm import Comm
from kernels.shards import in_pair, own_slice
from kernels.strategies.base import Context, Strategy, Trained


class MegatronCorePairs(Trained):
    """Even layers are split by output features, odd ones by input features."""

    def __init__(self, context: Context, comm: Comm) -> None:
        super().__init__(context, num_tokens=context.experiment.T)
        mine = own_slice(context.experiment.H, comm)
        whole = context.initial_weights()
        self.layers = nn.Sequential(*(SplitLayer(index, weight, mine, comm) for index, weight in enumerate(whole)))
        self.batch.input_TH.requires_grad_()  # as in tensor_parallel: the first layer sends its input gradient too
        self.train([(weight, in_pair(index, mine)) for index, weight in enumerate(self.layers.parameters())])


class SplitLayer(nn.Module):
    """Megatron's ColumnParallelLinear or RowParallelLinear with this GPU's shard of a given weight.

    Its own initialisation would draw the weight anew, and in fp32 only.
    """

    def __init__(self, index: int, weight_HH: Tensor, mine: slice, comm: Comm) -> None:
        super().__init__()
        megatron, width = megatron_layers(), weight_HH.shape[0]
        config = megatron.ModelParallelConfig(
            tensor_model_parallel_size=comm.size, params_dtype=weight_HH.dtype, use_cpu_initialization=True,
            perform_initialization=False, gradient_accumulation_fusion=False,
        )
        if index % 2:
            self.split = megatron.RowParallelLinear(width, width, config=config, init_method=None, bias=False,
                                                    input_is_parallel=True, skip_bias_add=False, tp_group=comm.group)
        else:
            self.split = megatron.ColumnParallelLinear(width, width, config=config, init_method=None, bias=False,
                                                       gather_output=False, tp_group=comm.group)
        self.split.to(weight_HH.device)
        with torch.no_grad():
            self.split.weight.copy_(in_pair(index, mine)([weight_HH] * (index + 1)))

    def forward(self, input: Tensor) -> Tensor:
        output: Tensor
        output, _ = self.split(input)  # and a bias to be added later, of which there is none
        return output


def megatron_layers() -> ModuleType:
    """Imported where first needed, for it takes seconds and most runs do without it; a launch host does it for its ranks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that Apex and Transformer Engine, which nothing here uses, are missing
        return importlib.import_module("megatron.core.tensor_parallel.layers")


def build(context: Context) -> Strategy:
    return MegatronCorePairs(context, context.world_comm())
