"""Which part of something whole is whose: equal shares in the order of the ranks, and pieces of a weight."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from kernels.comm import Comm

Cut = Callable[[list[Tensor]], Tensor]  # a piece out of the L whole weights


def own_slice(total: int, comm: Comm) -> slice:
    """This rank's share of so many features, or tokens; comm.size divides `total`."""
    share = total // comm.size
    return slice(comm.rank * share, (comm.rank + 1) * share)


def layer(index: int) -> Cut:
    """The whole weight of one layer."""
    return lambda whole: whole[index]


def column_split(index: int, mine: slice) -> Cut:
    """Of a layer split by output features: slices of rows of nn.Linear's weight, which is out x in."""
    return lambda whole: whole[index][mine, :]


def row_split(index: int, mine: slice) -> Cut:
    """Of a layer split by input features."""
    return lambda whole: whole[index][:, mine]


def in_pair(index: int, mine: slice) -> Cut:
    """Of a layer in Megatron's pairs: even layers are split by output features, odd ones by input features."""
    return row_split(index, mine) if index % 2 else column_split(index, mine)
