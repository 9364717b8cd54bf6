"""ZeRO and FSDP: parameters, gradients and optimizer state cut over P GPUs; what each keeps and what it sends.

`params` counts the model's parameters. Volumes are per optimizer step, a mean over GPUs where P does not divide them.
Source: Rajbhandari et al. 2020, arXiv 1910.02054, section 7; Zhao et al. 2023, arXiv 2304.11277, section 3.
"""

from __future__ import annotations

from fractions import Fraction

from app.theory.checks import quotient, whole
from app.theory.collectives import all_gather, padded_chunk, padded_length, reduce_scatter, ring_all_reduce


def zero1_volume(params: int, P: int) -> Fraction:
    """Elements each GPU sends at stage 1: a reduce-scatter of gradients, an all-gather of weights; 2 (P - 1) / P * params."""
    return _reduced(params, P) + _gathered(params, P)


def zero2_volume(params: int, P: int) -> Fraction:
    """Elements each GPU sends at stage 2 without accumulation: 2 (P - 1) / P * params, as stage 1 and data parallel."""
    return zero2_accumulated_volume(params, P, 1)


def zero2_accumulated_volume(params: int, P: int, A: int) -> Fraction:
    """Elements each GPU sends at stage 2 when each of A micro-steps reduces its gradient.

        sent = (A + 1) (P - 1) / P * params

    A reduce-scatters, so that only the shard is kept, and one all-gather of the new weights.
    """
    return whole("A", A) * _reduced(params, P) + _gathered(params, P)


def zero3_volume(params: int, P: int) -> Fraction:
    """Elements each GPU sends at stage 3 (FSDP full shard): two all-gathers, one reduce-scatter; 3 (P - 1) / P * params."""
    return zero3_accumulated_volume(params, P, 1)


def zero3_accumulated_volume(params: int, P: int, A: int) -> Fraction:
    """Elements each GPU sends at stage 3 when each of A micro-steps gathers and reduces: A 3 (P - 1) / P * params."""
    return whole("A", A) * (2 * _gathered(params, P) + _reduced(params, P))


def zero3_limit(params: int) -> int:
    """What `zero3_volume` comes close to as P grows: 3 params. Papers print this one."""
    return 3 * whole("params", params, 0)


def zero3_kept_gathered_volume(params: int, P: int) -> Fraction:
    """Elements each GPU sends at stage 3 when weights stay gathered between forward and backward: 2 (P - 1) / P * params."""
    return _gathered(params, P) + _reduced(params, P)


def data_parallel_bytes(params: int, P: int, gradient_bytes: int) -> Fraction:
    """Bytes each GPU sends per step in plain data parallel: 2 (P - 1) / P * params * gradient_bytes."""
    return ring_all_reduce(whole("params", params, 0), P) * whole("gradient_bytes", gradient_bytes)


def zero2_bytes(params: int, P: int, weight_bytes: int, gradient_bytes: int) -> Fraction:
    """Bytes each GPU sends per step at stage 1 or 2: (P - 1) / P * params * (gradient_bytes + weight_bytes)."""
    gradients = _reduced(params, P) * whole("gradient_bytes", gradient_bytes)
    return gradients + _gathered(params, P) * whole("weight_bytes", weight_bytes)


def zero3_bytes(params: int, P: int, weight_bytes: int, gradient_bytes: int) -> Fraction:
    """Bytes each GPU sends per step at stage 3: (P - 1) / P * params * (2 weight_bytes + gradient_bytes)."""
    return zero2_bytes(params, P, weight_bytes, gradient_bytes) + _gathered(params, P) * weight_bytes


def hybrid_cross_host_volume(params: int, P: int, F: int) -> Fraction:
    """Elements each GPU sends to other hosts per step when F GPUs of one host share one copy.

        sent = 2 (R - 1) / R * params / F          R = P / F copies

    Inside a host the shards are gathered and reduced; between hosts each GPU all-reduces its gradient shard.
    Raises ValueError if F does not divide P. Derived; Zhao et al. 2023, section 3.2.2, prints an approximation.
    """
    copies = quotient("F", whole("F", F), "P", whole("P", P))
    return Fraction(2 * (copies - 1), copies) * Fraction(whole("params", params, 0), F)


def shard_elements(elements: int, P: int) -> int:
    """Elements one GPU keeps of a flat buffer cut in P equal, padded shards: ceil(elements / P)."""
    return padded_chunk(whole("elements", elements, 0), P)


def padding_elements(elements: int, P: int) -> int:
    """Elements added to fill P equal shards: ceil(elements / P) P - elements, never more than P - 1."""
    return padded_length(whole("elements", elements, 0), P) - elements


def fsdp2_padded_layer(H: int, P: int) -> int:
    """Elements that FSDP2 gathers for one H x H weight, cut by rows and padded to equal rows: ceil(H / P) P H."""
    return padded_length(whole("H", H), P) * H


def state_bytes_per_param(weight_bytes: int, gradient_bytes: int, optimizer_bytes: int) -> int:
    """Bytes of training state for one parameter: weight, gradient and optimizer state added up."""
    return (whole("weight_bytes", weight_bytes, 0) + whole("gradient_bytes", gradient_bytes, 0)
            + whole("optimizer_bytes", optimizer_bytes, 0))


def resident_bytes(params: int, P: int, zero_stage: int, weight_bytes: int, gradient_bytes: int,
                   optimizer_bytes: int) -> Fraction:
    """Bytes of training state each GPU holds; each cut part is divided by P.

        stage 0   params (w + g + o)            stage 2   params (w + (g + o) / P)
        stage 1   params (w + g + o / P)        stage 3   params (w + g + o) / P

    w, g, o: bytes of weight, gradient and optimizer state for one parameter. Activations, buffers and cache come on top.
    Raises ValueError if zero_stage is not 0 to 3. Source: Rajbhandari et al. 2020, section 5 and figure 1.
    """
    whole("params", params, 0)
    stage = whole("zero_stage", zero_stage, 0, 3)
    parts = (("weight_bytes", weight_bytes, 3), ("gradient_bytes", gradient_bytes, 2), ("optimizer_bytes", optimizer_bytes, 1))
    cut = [Fraction(whole(name, size, 0), whole("P", P) if stage >= first else 1) for name, size, first in parts]
    return params * sum(cut, Fraction(0))


def _gathered(params: int, P: int) -> Fraction:
    return all_gather(whole("params", params, 0), P)


def _reduced(params: int, P: int) -> Fraction:
    return reduce_scatter(whole("params", params, 0), P)
