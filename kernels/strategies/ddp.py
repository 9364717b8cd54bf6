"""Data parallel by the library: torch's DistributedDataParallel around the single-device model.

Split:       the global batch of P*A*T tokens: T to each rank in each of A micro-steps (option `accumulation`).
Replicated:  parameters, gradients, optimizer state.
Sent:        during backward, buckets of gradients (`bucket_bytes`), each in one all-reduce as soon as it is full, in fp32 or
             bf16 (`comm_dtype`); once an optimizer step under no_sync, or in every micro-step (`sync_when`).
Predicted:   2(P-1)/P * L*H*H elements sent by each GPU (`data_parallel.volume`), A times as much where every micro-step syncs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook, bf16_compress_hook
from torch.nn.parallel import DistributedDataParallel

from kernels import model
from kernels.meters.timeline import Timeline
from kernels.shards import layer
from kernels.strategies.base import Context, Strategy, Trained
from kernels.strategies.data_parallel import FP32_BYTES, tokens_of_rank

Reduced = torch.futures.Future[Tensor]
Hook = Callable[[dist.ProcessGroup, dist.GradBucket], Reduced]
HOOKS: dict[str, Hook] = {"fp32": allreduce_hook, "bf16": bf16_compress_hook}  # torch's own; "fp32" is whatever is computed in
MIB = 2**20


class DDP(Trained):
    """DDP averages over ranks, so each rank divides its loss by its own A*T tokens: the mean is the global gradient."""

    def __init__(self, context: Context) -> None:
        experiment, mesh = context.experiment, context.mesh
        self.micro_steps = int(experiment.option("accumulation"))
        super().__init__(context, num_tokens=mesh.world_size * self.micro_steps * experiment.T)
        self.mine = tokens_of_rank(context, self.micro_steps)
        layers = model.stack(context.initial_weights())
        # DDP cuts its buckets by bytes. A cap in proportion to the dtype keeps the number of messages equal in fp32 and fp64,
        # and with it the headers, so that their difference is payload. (Any cap given holds for the first bucket, too.)
        cap_bytes = int(experiment.option("bucket_bytes")) * context.dtype.itemsize // FP32_BYTES
        self.replica = DistributedDataParallel(layers, bucket_cap_mb=cap_bytes / MIB)
        hook = HOOKS[str(experiment.option("comm_dtype"))]
        self.replica.register_comm_hook(dist.group.WORLD, in_flight(hook, context.timeline))
        self.layer_began = 0.0
        for index, weight in enumerate(layers.parameters()):
            weight.register_post_accumulate_grad_hook(self.layer_done(index))
        self.train([(weight, layer(index)) for index, weight in enumerate(layers.parameters())])

    def forward_backward(self) -> None:
        for micro_step in range(self.micro_steps):
            with self.synced_or_not(micro_step):
                self.add_gradient(micro_step)

    def synced_or_not(self, micro_step: int) -> AbstractContextManager[None]:
        """no_sync: backward only adds to .grad, and the last micro-step's buckets carry the sum."""
        last = micro_step == self.micro_steps - 1
        if last or self.context.experiment.option("sync_when") == "every_micro_step":
            return nullcontext()
        return self.replica.no_sync()

    def add_gradient(self, micro_step: int) -> None:
        timeline, count = self.context.timeline, self.context.experiment.T
        tokens = self.mine.part(first=micro_step * count, count=count)
        with timeline.interval("forward"):
            output = self.replica(tokens.input_TH)
            loss = model.squared_error(output, tokens.target_TH, self.micro_steps * count)
        with timeline.interval("backward"):
            self.layer_began = time.monotonic()
            loss.backward()

    def layer_done(self, index: int) -> Callable[[Tensor], None]:
        """Log each layer's share of backward: from the gradient that was ready before it to its own."""
        def log(weight: Tensor) -> None:
            now = time.monotonic()
            self.context.timeline.record(f"backward of layer {index}", self.layer_began, now)
            self.layer_began = now
        return log


def in_flight(hook: Hook, timeline: Timeline) -> Hook:
    """The same hook, with every bucket's all-reduce logged from its start to its completion.

    By its own name torch would refuse bf16_compress_hook without NCCL. gloo adds up bf16 all the same.
    """
    def logged(group: dist.ProcessGroup, bucket: dist.GradBucket) -> Reduced:
        name, began = f"all_reduce of bucket {bucket.index()}", time.monotonic()

        def done(reduced: Reduced) -> Tensor:
            timeline.record(name, began, time.monotonic())
            return reduced.value()

        return hook(group, bucket).then(done)

    logged.__annotations__.clear()  # torch compares them with types, and in this module they are text
    return logged


def build(context: Context) -> Strategy:
    return DDP(context)
