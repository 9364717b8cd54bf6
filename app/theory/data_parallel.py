"""Data parallel: every GPU holds the whole model, and one all-reduce a step sums the gradient.

The toy model is L layers, each an H x H weight without bias. Traffic does not depend on the tokens.
"""

from __future__ import annotations

from fractions import Fraction

from app.theory import collectives
from app.theory.checks import whole


def params(L: int, H: int) -> int:
    """Parameters of the toy model: L H^2. Raises ValueError if L < 1 or H < 1."""
    return whole("L", L) * whole("H", H) ** 2


def volume(P: int, L: int, H: int) -> Fraction:
    """Elements each GPU sends in one step.

        sent = 2 (P - 1) / P * L H^2

    One ring all-reduce of the gradient, which is as large as the model. A mean where P does not divide L H^2; 0 at P = 1.
    """
    return collectives.ring_all_reduce(params(L, H), P)


def total_volume(P: int, L: int, H: int) -> int:
    """Elements all GPUs together send in one step: 2 (P - 1) L H^2, exact for every cut."""
    return collectives.ring_all_reduce_total(params(L, H), P)


def padded_volume(P: int, L: int, H: int) -> int:
    """Elements each GPU sends when the gradient is filled up to equal chunks: 2 (P - 1) ceil(L H^2 / P)."""
    return collectives.ring_all_reduce_padded(params(L, H), P)


def limit(L: int, H: int) -> int:
    """What `volume` comes close to, and never reaches, as P grows: 2 L H^2."""
    return 2 * params(L, H)


def pair_model_volume(P: int, L: int, H: int) -> Fraction:
    """Elements each GPU sends when each of the L layers is two H x H weights: 2 (P - 1) / P * 2 L H^2."""
    return 2 * volume(P, L, H)


def synced_once_volume(params: int, P: int) -> Fraction:
    """Elements each GPU sends per optimizer step with accumulation under no_sync: 2 (P - 1) / P * params, for any A."""
    return collectives.ring_all_reduce(whole("params", params, 0), P)


def synced_every_micro_step_volume(params: int, P: int, A: int) -> Fraction:
    """Elements each GPU sends per optimizer step when every one of A micro-steps all-reduces: A 2 (P - 1) / P * params."""
    return whole("A", A) * synced_once_volume(params, P)
