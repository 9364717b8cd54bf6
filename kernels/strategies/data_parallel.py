"""Data parallel by hand: every rank has the whole model and tokens of its own.

Split:       the global batch of P*A*T tokens: T to each rank in each of A micro-steps (option `accumulation`).
Replicated:  parameters, gradients, optimizer state.
Sent:        after backward, the gradient of all layers, L*H*H elements: in one all-reduce, one a parameter, or one a bucket
             (`sync`); once an optimizer step, or in every micro-step (`sync_when`); in fp32 or in bf16 (`comm_dtype`).
Predicted:   2(P-1)/P * L*H*H elements sent by each GPU (`data_parallel.volume`), A times as much where every micro-step syncs.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from kernels import data, model, schedule
from kernels.comm import Comm
from kernels.shards import layer
from kernels.strategies.base import Context, Strategy, Trained

FP32_BYTES = 4


class DataParallel(Trained):
    """Replicas stay equal because the same summed gradient reaches each."""

    def __init__(self, context: Context, comm: Comm) -> None:
        experiment, mesh = context.experiment, context.mesh
        self.micro_steps = int(experiment.option("accumulation"))
        super().__init__(context, num_tokens=mesh.world_size * self.micro_steps * experiment.T)
        self.comm = comm
        self.mine = tokens_of_rank(context, self.micro_steps)
        self.layers = model.stack(context.initial_weights())
        weights = list(self.layers.parameters())
        self.groups = [[weights[index] for index in group] for group in sent_together(context)]
        self.train([(weight, layer(index)) for index, weight in enumerate(weights)])

    def forward_backward(self) -> None:
        if self.context.experiment.option("sync_when") == "once":
            for micro_step in range(self.micro_steps):
                self.add_gradient(micro_step)
            self.sum_over_ranks()
        else:
            self.sync_every_micro_step()

    def sync_every_micro_step(self) -> None:
        """The same sum, reduced in A parts: what was reduced before is laid aside, or it would be summed over ranks again."""
        reduced = [torch.zeros_like(weight) for weight in self.parameters()]
        for micro_step in range(self.micro_steps):
            self.add_gradient(micro_step)
            self.sum_over_ranks()
            for total, weight in zip(reduced, self.parameters(), strict=True):
                if weight.grad is not None:
                    total += weight.grad
                weight.grad = None
        for total, weight in zip(reduced, self.parameters(), strict=True):
            weight.grad = total

    def add_gradient(self, micro_step: int) -> None:
        """One micro-step's backward: autograd adds its gradient to what .grad holds."""
        timeline, count = self.context.timeline, self.context.experiment.T
        tokens = self.mine.part(first=micro_step * count, count=count)
        with timeline.interval("forward"):
            loss = model.squared_error(self.layers(tokens.input_TH), tokens.target_TH, self.num_tokens)
        with timeline.interval("backward"):
            loss.backward()

    def sum_over_ranks(self) -> None:
        comm_dtype = torch.bfloat16 if self.context.experiment.option("comm_dtype") == "bf16" else self.context.dtype
        for group in self.groups:
            with self.context.timeline.interval("all_reduce"):
                sum_gradients([weight.grad for weight in group if weight.grad is not None], comm_dtype, self.comm)


def sum_gradients(gradients: list[Tensor], comm_dtype: torch.dtype, comm: Comm) -> None:
    """One all-reduce over these gradients, laid end to end and rounded to `comm_dtype` for the way.

    The loss is divided by the *global* batch already, so the sum over ranks is the gradient: nothing to average.
    """
    flat = torch.cat([gradient.flatten() for gradient in gradients]).to(comm_dtype)
    comm.all_reduce(flat)
    for gradient, summed in zip(gradients, flat.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(summed.view_as(gradient))


def sent_together(context: Context) -> Iterator[tuple[int, ...]]:
    """Positions of the parameters whose gradients share an all-reduce, last layer first, as backward finishes them.

    A bucket's bytes are counted in fp32 whatever is computed in, so that both dtypes of a measurement send as many messages.
    """
    experiment = context.experiment
    sync, bucket_bytes = str(experiment.option("sync")), int(experiment.option("bucket_bytes"))
    for bucket in schedule.gradient_buckets(experiment.L, FP32_BYTES * experiment.H**2, sync, bucket_bytes):
        yield bucket.parameters


def tokens_of_rank(context: Context, micro_steps: int) -> data.Batch:
    """This rank's share of the global batch: T tokens for each micro-step."""
    count = micro_steps * context.experiment.T
    whole = context.global_batch(context.mesh.world_size * count)
    return whole.part(first=context.mesh.rank * count, count=count)


def build(context: Context) -> Strategy:
    return DataParallel(context, context.world_comm())
