"""Every strategy that can run, by the name it has in kernels.spec."""

from __future__ import annotations

from collections.abc import Callable

from kernels.strategies import (
    data_parallel,
    ddp,
    loss_reduction,
    megatron_core,
    pipeline_parallel,
    pipeline_torch,
    ring_all_reduce,
    single,
    tensor_dtensor,
    tensor_parallel,
)
from kernels.strategies.base import Context, Strategy

Build = Callable[[Context], Strategy]

# Libraries that take seconds to import and that few runs need: a launch host imports them before the first run that does.
LATE_IMPORTS: dict[str, Callable[[], object]] = {"megatron_core": megatron_core.megatron_layers}

STRATEGIES: dict[str, Build] = {
    "single": single.build,
    "data_parallel": data_parallel.build,
    "ddp": ddp.build,
    "loss_reduction": loss_reduction.build,
    "tensor_parallel": tensor_parallel.build_each_layer,
    "tensor_megatron": tensor_parallel.build_megatron,
    "tensor_dtensor": tensor_dtensor.build,
    "megatron_core": megatron_core.build,
    "pipeline_gpipe": pipeline_parallel.build_gpipe,
    "pipeline_1f1b": pipeline_parallel.build_1f1b,
    "pipeline_torch": pipeline_torch.build,
    "ring_all_reduce": ring_all_reduce.build,
}
