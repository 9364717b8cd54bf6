"""Tensor parallel by hand: every GPU has a piece of each matrix and all of the tokens.

Split:       each H x H weight, over P' = min(P, H) GPUs; P' divides H, further GPUs idle.
Replicated:  the T x H activations between layers (tensor_parallel) or between pairs of layers (tensor_megatron).
Sent:        tensor_parallel: each layer combines T*H elements forward and T*H backward, 2L all-reduces a step;
             tensor_megatron: each pair of layers, column split then row split, L all-reduces a step; with sequence
             parallelism each of them is a reduce-scatter and an all-gather, and between pairs a GPU has T/P' tokens.
Predicted:   2L * V_ring(T*H, P') elements sent by each active GPU (`tensor_parallel.exact_volume`), half for the pair
             (`tensor_parallel.megatron_volume`, `tensor_parallel.sequence_parallel_volume`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from kernels import data, model
from kernels.collectives import Collectives
from kernels.comm import Comm
from kernels.shards import Cut, in_pair, own_slice, row_split
from kernels.spec import tensor_active_gpus
from kernels.strategies.base import Context, Strategy, Trained

# T tokens, H width, S = H/P' the shard of a width, R = T/P' this GPU's own tokens. A name ending _TS holds this GPU's slice
# of the columns, one ending _RH its slice of the tokens.


class SumForward(torch.autograd.Function):
    """Megatron's g: sum the partial outputs of all GPUs; backward passes the gradient on as it is."""

    @staticmethod
    def forward(ctx: Any, partial_TH: Tensor, collectives: Collectives) -> Tensor:
        return collectives.all_reduce(partial_TH)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


class SumBackward(torch.autograd.Function):
    """Megatron's f: pass the activations on as they are; backward sums the partial input gradients of all GPUs."""

    @staticmethod
    def forward(ctx: Any, input_TH: Tensor, collectives: Collectives) -> Tensor:
        ctx.collectives = collectives
        return input_TH.view_as(input_TH)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.collectives.all_reduce(gradients[0]), None


class GatherTokens(torch.autograd.Function):
    """g of sequence parallelism: every GPU's tokens for all of them; backward, the sum of their gradients goes back to each."""

    @staticmethod
    def forward(ctx: Any, own_RH: Tensor, collectives: Collectives) -> Tensor:
        ctx.collectives = collectives
        return collectives.all_gather(own_RH)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.collectives.reduce_scatter(gradients[0]), None


class ScatterSum(torch.autograd.Function):
    """Its g-bar, the reverse: sum the partial outputs and leave each GPU its own tokens; backward gathers their gradients."""

    @staticmethod
    def forward(ctx: Any, partial_TH: Tensor, collectives: Collectives) -> Tensor:
        ctx.collectives = collectives
        return collectives.reduce_scatter(partial_TH)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.collectives.all_gather(gradients[0]), None


class RowSplitLayer(nn.Module):
    """y = x @ w.T with the *input* features split: this GPU multiplies its slice of x, and the products are summed.

    Backward, slicing leaves each GPU with its own slice of the input gradient, zero elsewhere; SumBackward puts the slices
    together. That is the teaching model: one combination forward and one backward for every layer. An all-gather could
    carry the backward one for half the bytes.
    """

    def __init__(self, weight_HH: Tensor, collectives: Collectives) -> None:
        super().__init__()
        self.collectives = collectives
        self.columns = own_slice(weight_HH.shape[1], collectives.comm)
        self.shard = model.linear(weight_HH[:, self.columns])

    def forward(self, input_TH: Tensor) -> Tensor:
        input_TS = combine_backward(input_TH, self.collectives)[:, self.columns]
        return combine_forward(self.shard(input_TS), self.collectives)


class MegatronPair(nn.Module):
    """Two layers: the first split by output features, the second by input features.

    What the first one puts out is what the second one wants, so nothing is sent between them.
    """

    def __init__(self, first_HH: Tensor, second_HH: Tensor, collectives: Collectives) -> None:
        super().__init__()
        self.collectives = collectives
        mine = own_slice(first_HH.shape[0], collectives.comm)
        self.column_split = model.linear(first_HH[mine, :])
        self.row_split = model.linear(second_HH[:, mine])

    def forward(self, input_TH: Tensor) -> Tensor:
        hidden_TS = self.column_split(combine_backward(input_TH, self.collectives))
        return combine_forward(self.row_split(hidden_TS), self.collectives)


class SequenceParallelPair(MegatronPair):
    """The same pair for a GPU that has only its own tokens outside of it.

    The gathered input stays until backward, as the column split's weight gradient wants it: nothing is gathered twice.
    """

    def forward(self, input_RH: Tensor) -> Tensor:
        hidden_TS = self.column_split(gather_tokens(input_RH, self.collectives))
        return scatter_sum(self.row_split(hidden_TS), self.collectives)


def combine_forward(partial_TH: Tensor, collectives: Collectives) -> Tensor:
    return SumForward.apply(partial_TH, collectives)  # type: ignore[no-any-return, no-untyped-call]


def combine_backward(input_TH: Tensor, collectives: Collectives) -> Tensor:
    return SumBackward.apply(input_TH, collectives)  # type: ignore[no-any-return, no-untyped-call]


def gather_tokens(own_RH: Tensor, collectives: Collectives) -> Tensor:
    return GatherTokens.apply(own_RH, collectives)  # type: ignore[no-any-return, no-untyped-call]


def scatter_sum(partial_TH: Tensor, collectives: Collectives) -> Tensor:
    return ScatterSum.apply(partial_TH, collectives)  # type: ignore[no-any-return, no-untyped-call]


class TensorParallel(Trained):
    """Trains what `split` makes of the layers. All active GPUs see the same T tokens; idle ones have no layers.

    With sequence parallelism each has T/P' of them at the model's ends, and the losses of all GPUs add up to the whole.
    """

    def __init__(self, context: Context, collectives: Collectives | None, split: Split, tokens_are_split: bool) -> None:
        super().__init__(context, num_tokens=context.experiment.T)
        if collectives is None:
            self.train([])
            return
        self.layers = split(context.initial_weights(), collectives)
        mine = collectives.own_tokens(self.batch.input_TH) if tokens_are_split else slice(None)
        # The taught model lets the first layer send its input gradient too, as it must when an embedding lies below it.
        self.batch = data.Batch(self.batch.input_TH[mine].requires_grad_(), self.batch.target_TH[mine])
        self.train(_pieces(self.layers, collectives.comm))


Split = Callable[[list[Tensor], Collectives], nn.Sequential]


def each_layer(weights: list[Tensor], collectives: Collectives) -> nn.Sequential:
    return nn.Sequential(*(RowSplitLayer(weight, collectives) for weight in weights))


def in_pairs(weights: list[Tensor], collectives: Collectives) -> nn.Sequential:
    pairs = zip(weights[::2], weights[1::2], strict=True)
    return nn.Sequential(*(MegatronPair(first, second, collectives) for first, second in pairs))


def in_sequence_parallel_pairs(weights: list[Tensor], collectives: Collectives) -> nn.Sequential:
    pairs = zip(weights[::2], weights[1::2], strict=True)
    return nn.Sequential(*(SequenceParallelPair(first, second, collectives) for first, second in pairs))


def _pieces(layers: nn.Sequential, comm: Comm) -> list[tuple[Tensor, Cut]]:
    """Pair every shard with its place in the whole weights."""
    shards = list(layers.parameters())
    mine = own_slice(max(shards[0].shape), comm)
    cut = in_pair if isinstance(layers[0], MegatronPair) else row_split
    return [(shard, cut(index, mine)) for index, shard in enumerate(shards)]


def build_each_layer(context: Context) -> Strategy:
    return TensorParallel(context, _collectives(context, by_hand=False), each_layer, tokens_are_split=False)


def build_megatron(context: Context) -> Strategy:
    collectives = _collectives(context, by_hand=context.experiment.option("collectives") == "ring")
    tokens_are_split = context.experiment.option("activations") == "sequence_parallel"
    return TensorParallel(context, collectives, in_sequence_parallel_pairs if tokens_are_split else in_pairs, tokens_are_split)


def _collectives(context: Context, by_hand: bool) -> Collectives | None:
    """Among the GPUs that hold a shard; None on one that idles."""
    comm = context.new_comm(context.mesh.first(tensor_active_gpus(context.mesh.world_size, context.experiment.H)))
    return None if comm is None else Collectives(comm, by_hand)
