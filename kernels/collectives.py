"""The collectives that activations need, in the library's version or in ours: what a strategy may choose by an option."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kernels import ring
from kernels.comm import Comm
from kernels.shards import own_slice

# Tensors of tokens x features, contiguous; the P ranks hold equally many tokens where each holds only its own.
# T tokens of all ranks, S = T/P tokens of one rank, H features.


@dataclass(frozen=True)
class Collectives:
    """All-reduce, all-gather and reduce-scatter of activations within one group. None changes what it is given."""

    comm: Comm
    by_hand: bool  # our ring, written from send and receive

    def all_reduce(self, partial_TH: Tensor) -> Tensor:
        """The sum over ranks."""
        summed_TH = partial_TH.clone(memory_format=torch.contiguous_format)
        if self.by_hand:
            ring.ring_all_reduce(summed_TH.view(-1), self.comm)
        else:
            self.comm.all_reduce(summed_TH)
        return summed_TH

    def all_gather(self, own_SH: Tensor) -> Tensor:
        """All tokens, in the order of the ranks."""
        tokens, width = own_SH.shape
        whole_TH = own_SH.new_empty(tokens * self.comm.size, width)
        if self.by_hand:
            whole_TH[self.own_tokens(whole_TH)] = own_SH
            ring.ring_all_gather(whole_TH.view(-1), self.comm)
        else:
            self.comm.all_gather(whole_TH, own_SH.contiguous())
        return whole_TH

    def reduce_scatter(self, partial_TH: Tensor) -> Tensor:
        """This rank's tokens of the sum over ranks."""
        if self.by_hand:
            summed = ring.ring_reduce_scatter(partial_TH.clone(memory_format=torch.contiguous_format).view(-1), self.comm)
            return summed.view(-1, partial_TH.shape[1]).clone()
        own_SH = torch.empty_like(partial_TH[self.own_tokens(partial_TH)])
        self.comm.reduce_scatter(own_SH, partial_TH.contiguous())
        return own_SH

    def own_tokens(self, whole_TH: Tensor) -> slice:
        """Which of all tokens are this rank's; the group's size divides their number."""
        return own_slice(whole_TH.shape[0], self.comm)
