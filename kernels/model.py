"""The toy model as single-device code: L linear layers of H x H, no bias, no activation function. params = L*H*H."""

from __future__ import annotations

import torch
from torch import Tensor, nn

LEARNING_RATE = 1e-4  # small enough for the deepest, widest toy: 16 layers of 64 x 64 diverge at 1e-2

# Shapes: T tokens, H width. A layer computes y_TH = x_TH @ w_HH.T, as nn.Linear does.


def initial_weights(num_layers: int, width: int, seed: int, dtype: torch.dtype) -> list[Tensor]:
    """The same L weights for a seed in every dtype: drawn in fp64, then rounded. Each keeps the size of its input."""
    generator = torch.Generator().manual_seed(seed)
    scale = width**-0.5
    return [(torch.randn(width, width, generator=generator, dtype=torch.float64) * scale).to(dtype) for _ in range(num_layers)]


def linear(weight: Tensor) -> nn.Linear:
    """A layer without bias that owns a copy of `weight` (out features x in features)."""
    out_features, in_features = weight.shape
    layer = nn.Linear(in_features, out_features, bias=False, dtype=weight.dtype, device="meta").to_empty(device=weight.device)
    with torch.no_grad():
        layer.weight.copy_(weight)
    return layer


def stack(weights: list[Tensor]) -> nn.Sequential:
    """The layers one after the other."""
    return nn.Sequential(*(linear(weight) for weight in weights))


def squared_error(output_TH: Tensor, target_TH: Tensor, global_batch: int) -> Tensor:
    """Summed over the tokens at hand, divided by the tokens of the *global* batch.

    So the losses, and the gradients, of all ranks and micro-batches add up to those of one process with the whole batch.
    """
    return (output_TH - target_TH).square().sum() / global_batch
