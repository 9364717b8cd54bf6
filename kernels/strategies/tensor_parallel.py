"""Tensor parallel by hand: every GPU has a piece of each matrix and all of the tokens.

Split:       each H x H weight, over P' = min(P, H) GPUs; P' divides H, further GPUs idle.
Replicated:  the T x H activations between layers (tensor_parallel) or between pairs of layers (tensor_megatron).
Sent:        tensor_parallel: each layer combines T*H elements forward and T*H backward, 2L all-reduces a step;
             tensor_megatron: each pair of layers, column split then row split, L all-reduces a step.
Predicted:   2L * V_ring(T*H, P') elements sent by each active GPU (`tensor_parallel.exact_volume`), half for the pair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from kernels import model
from kernels.comm import Comm
from kernels.spec import tensor_active_gpus
from kernels.strategies.base import Context, Strategy, Trained

# T tokens, H width, S = H/P' the shard of a width. A name ending _TS holds this GPU's slice of the columns.


class SumForward(torch.autograd.Function):
    """Megatron's g: sum the partial outputs of all GPUs; backward passes the gradient on as it is."""

    @staticmethod
    def forward(ctx: Any, partial_TH: Tensor, comm: Comm) -> Tensor:
        summed_TH = partial_TH.clone()
        comm.all_reduce(summed_TH)
        return summed_TH

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


class SumBackward(torch.autograd.Function):
    """Megatron's f: pass the activations on as they are; backward sums the partial input gradients of all GPUs."""

    @staticmethod
    def forward(ctx: Any, input_TH: Tensor, comm: Comm) -> Tensor:
        ctx.comm = comm
        return input_TH.view_as(input_TH)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        summed_TH = gradients[0].clone()
        ctx.comm.all_reduce(summed_TH)
        return summed_TH, None


class RowSplitLayer(nn.Module):
    """y = x @ w.T with the *input* features split: this GPU multiplies its slice of x, and the products are summed.

    Backward, slicing leaves each GPU with its own slice of the input gradient, zero elsewhere; SumBackward puts the slices
    together. That is the teaching model: one combination forward and one backward for every layer. An all-gather could
    carry the backward one for half the bytes.
    """

    def __init__(self, weight_HH: Tensor, comm: Comm) -> None:
        super().__init__()
        self.comm = comm
        self.columns = own_slice(weight_HH.shape[1], comm)
        self.shard = model.linear(weight_HH[:, self.columns])

    def forward(self, input_TH: Tensor) -> Tensor:
        input_TS = combine_backward(input_TH, self.comm)[:, self.columns]
        return combine_forward(self.shard(input_TS), self.comm)


class MegatronPair(nn.Module):
    """Two layers: the first split by output features, the second by input features.

    What the first one puts out is what the second one wants, so nothing is sent between them.
    """

    def __init__(self, first_HH: Tensor, second_HH: Tensor, comm: Comm) -> None:
        super().__init__()
        self.comm = comm
        mine = own_slice(first_HH.shape[0], comm)
        self.column_split = model.linear(first_HH[mine, :])
        self.row_split = model.linear(second_HH[:, mine])

    def forward(self, input_TH: Tensor) -> Tensor:
        hidden_TS = self.column_split(combine_backward(input_TH, self.comm))
        return combine_forward(self.row_split(hidden_TS), self.comm)


def combine_forward(partial_TH: Tensor, comm: Comm) -> Tensor:
    return SumForward.apply(partial_TH, comm)  # type: ignore[no-any-return, no-untyped-call]


def combine_backward(input_TH: Tensor, comm: Comm) -> Tensor:
    return SumBackward.apply(input_TH, comm)  # type: ignore[no-any-return, no-untyped-call]


def own_slice(width: int, comm: Comm) -> slice:
    """This GPU's share of `width` features; comm.size divides width."""
    share = width // comm.size
    return slice(comm.rank * share, (comm.rank + 1) * share)


class TensorParallel(Trained):
    """Trains what `split` makes of the layers. All active GPUs see the same T tokens; idle ones have no layers."""

    def __init__(self, context: Context, comm: Comm | None, split: Callable[[list[Tensor], Comm], nn.Sequential]) -> None:
        super().__init__(context, num_tokens=context.experiment.T)
        if comm is None:
            self.train([])
            return
        self.layers = split(context.initial_weights(), comm)
        # The taught model lets the first layer send its input gradient too, as it must when an embedding lies below it.
        self.batch.input_TH.requires_grad_()
        self.train(_pieces(self.layers, comm))

    def forward_backward(self) -> None:
        with self.context.timeline.interval("forward"):
            loss = model.squared_error(self.layers(self.batch.input_TH), self.batch.target_TH, self.num_tokens)
        with self.context.timeline.interval("backward"):
            loss.backward()


def each_layer(weights: list[Tensor], comm: Comm) -> nn.Sequential:
    return nn.Sequential(*(RowSplitLayer(weight, comm) for weight in weights))


def in_pairs(weights: list[Tensor], comm: Comm) -> nn.Sequential:
    pairs = zip(weights[::2], weights[1::2], strict=True)
    return nn.Sequential(*(MegatronPair(first, second, comm) for first, second in pairs))


def _pieces(layers: nn.Sequential, comm: Comm) -> list[tuple[Tensor, Callable[[list[Tensor]], Tensor]]]:
    """Pair every shard with its place in the whole weights: column splits are slices of rows of nn.Linear's weight."""
    shards = list(layers.parameters())
    width = max(shards[0].shape)
    mine = own_slice(width, comm)

    def cut(index: int) -> Callable[[list[Tensor]], Tensor]:
        column_split = isinstance(layers[0], MegatronPair) and index % 2 == 0
        return lambda whole: whole[index][mine, :] if column_split else whole[index][:, mine]

    return [(shard, cut(index)) for index, shard in enumerate(shards)]


def build_each_layer(context: Context) -> Strategy:
    return TensorParallel(context, _active_comm(context), each_layer)


def build_megatron(context: Context) -> Strategy:
    return TensorParallel(context, _active_comm(context), in_pairs)


def _active_comm(context: Context) -> Comm | None:
    return context.new_comm(context.mesh.first(tensor_active_gpus(context.mesh.world_size, context.experiment.H)))
