"""Tokens and targets, fixed by the seed: whoever asks for token i gets the same numbers, on any rank."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Batch:
    """Inputs and targets, each of shape T x H (tokens x width)."""

    input_TH: Tensor
    target_TH: Tensor

    def part(self, first: int, count: int) -> Batch:
        """Tokens first .. first + count - 1, copied: what backward keeps of them is then counted as theirs alone."""
        return Batch(self.input_TH[first : first + count].clone(), self.target_TH[first : first + count].clone())

    def to(self, device: torch.device) -> Batch:
        return Batch(self.input_TH.to(device), self.target_TH.to(device))


def global_batch(num_tokens: int, width: int, seed: int, dtype: torch.dtype) -> Batch:
    """The batch of one optimizer step; every step sees the same one. Drawn in fp64, then rounded to `dtype`."""
    generator = torch.Generator().manual_seed(seed + 1)
    tokens = torch.randn(2, num_tokens, width, generator=generator, dtype=torch.float64).to(dtype)
    return Batch(tokens[0].clone(), tokens[1].clone())
