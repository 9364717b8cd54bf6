"""Tensor parallel: every matrix is cut over the GPUs, and activations are combined inside each layer.

Toy model: L layers of H x H. As taught, each layer combines its T x H activations once forward and once backward.
A Transformer layer combines twice in each direction; there t is the size of the tensor group.
"""

from __future__ import annotations

from fractions import Fraction

from app.theory.checks import quotient, whole
from app.theory.collectives import all_gather, ring_all_reduce, ring_all_reduce_padded

# All-reduces of T x H activations in one Transformer layer: after attention and after the MLP.
FORWARD_ALL_REDUCES = 2
BACKWARD_ALL_REDUCES = 2


def active_gpus(P: int, H: int) -> int:
    """GPUs that hold a piece of an H x H weight: min(P, H). The others idle."""
    return min(whole("P", P), whole("H", H))


def columns_per_gpu(H: int, t: int) -> int:
    """Columns of an H x H weight on each GPU of a tensor group: H / t.

    Heads of an attention layer are handed out the same way. Raises ValueError if t does not divide H: t = 3 cannot cut 4.
    """
    return quotient("t", whole("t", t), "H", whole("H", H))


def boundary_volume(P: int, H: int, T: int) -> Fraction:
    """Elements each GPU sends to combine one layer's activations once: 2 (P - 1) / P * T H."""
    return ring_all_reduce(_activations(T, H), P)


def taught_volume(P: int, L: int, H: int, T: int) -> Fraction:
    """Elements each GPU sends in one step, as the lesson states it.

        sent = 2 L * 2 (P - 1) / P * T H

    One all-reduce forward and one backward in every layer, the first included. Does not look at whether P > H.
    """
    return 2 * whole("L", L) * boundary_volume(P, H, T)


def taught_total(P: int, L: int, H: int, T: int) -> int:
    """Elements all GPUs together send in one step, as the lesson states it: 2 L * 2 (P - 1) T H."""
    return int(P * taught_volume(P, L, H, T))


def exact_volume(P: int, L: int, H: int, T: int) -> Fraction:
    """Elements each *active* GPU sends in one step: `taught_volume` on min(P, H) GPUs, a mean over them."""
    return taught_volume(active_gpus(P, H), L, H, T)


def exact_total(P: int, L: int, H: int, T: int) -> int:
    """Elements all GPUs together send in one step: 2 L * 2 (P' - 1) T H with P' = min(P, H)."""
    return taught_total(active_gpus(P, H), L, H, T)


def padded_volume(P: int, L: int, H: int, T: int) -> int:
    """Elements each GPU sends when activations are filled up to equal chunks: 2 L * 2 (P - 1) ceil(T H / P)."""
    return 2 * whole("L", L) * ring_all_reduce_padded(_activations(T, H), P)


def raw_input_volume(P: int, L: int, H: int, T: int) -> Fraction:
    """`taught_volume` when nothing below the first layer is trained: 2 L - 1 all-reduces instead of 2 L."""
    return (2 * whole("L", L) - 1) * boundary_volume(P, H, T)


def column_volume(P: int, L: int, H: int, T: int) -> Fraction:
    """Elements each GPU sends when every layer is split by columns and its output gathered, on raw input.

        sent = L (P - 1) / P * T H + (L - 1) 2 (P - 1) / P * T H

    An all-gather forward in each layer, an all-reduce backward in each but the first.
    """
    gathers = whole("L", L) * all_gather(_activations(T, H), P)
    return gathers + (L - 1) * boundary_volume(P, H, T)


def row_volume(P: int, L: int, H: int, T: int) -> Fraction:
    """Elements each GPU sends when every layer is split by rows and its input is replicated, on raw input.

        sent = L 2 (P - 1) / P * T H + (L - 1) (P - 1) / P * T H

    An all-reduce forward in each layer, an all-gather backward in each but the first.
    """
    gathers = (whole("L", L) - 1) * all_gather(_activations(T, H), P)
    return L * boundary_volume(P, H, T) + gathers


def megatron_volume(P: int, L: int, H: int, T: int) -> Fraction:
    """Elements each GPU sends when layers pair up, a column split and then a row split.

        sent = (L / 2) * 2 * 2 (P - 1) / P * T H

    One all-reduce forward and one backward per pair: half of `taught_volume`. Raises ValueError if L is odd.
    Source: Shoeybi et al. 2019, arXiv 1909.08053, section 3.
    """
    return 2 * _pairs(L) * boundary_volume(P, H, T)


def megatron_raw_input_volume(P: int, L: int, H: int, T: int) -> Fraction:
    """`megatron_volume` when nothing below the first pair is trained: its backward all-reduce is saved."""
    return (2 * _pairs(L) - 1) * boundary_volume(P, H, T)


def sequence_parallel_volume(P: int, L: int, H: int, T: int) -> Fraction:
    """Elements each GPU sends in Megatron pairs with sequence parallelism, the gathered input kept for backward.

        sent = (L / 2) * 4 * (P - 1) / P * T H

    Per pair an all-gather and a reduce-scatter forward, and one of each backward: as much as `megatron_volume`.
    Raises ValueError if L is odd. Source: Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.2.
    """
    return 4 * _pairs(L) * all_gather(_activations(T, H), P)


def sequence_parallel_all_reduced_volume(P: int, L: int, H: int, T: int) -> Fraction:
    """`sequence_parallel_volume` on a backend that runs each reduce-scatter as an all-reduce, as gloo does.

        sent = (L / 2) * 6 * (P - 1) / P * T H

    1.5 times as much: of the four halves of an all-reduce the two reduce-scatters become whole ones.
    """
    return 6 * _pairs(L) * all_gather(_activations(T, H), P)


def break_even_tokens(H: int) -> Fraction:
    """Tokens at which tensor parallel as taught sends as much as data parallel: H / 2, for every L and P."""
    return Fraction(whole("H", H), 2)


def megatron_break_even_tokens(H: int) -> int:
    """Tokens at which Megatron pairs send as much as data parallel: H, for every even L and every P."""
    return whole("H", H)


def data_over_tensor(H: int, T: int) -> Fraction:
    """Data-parallel volume over tensor-parallel volume as taught: H / (2 T)."""
    return break_even_tokens(H) / whole("T", T)


def all_reduces_per_layer() -> int:
    """All-reduces in one Transformer layer, forward and backward: 2 + 2."""
    return FORWARD_ALL_REDUCES + BACKWARD_ALL_REDUCES


def all_reduces_with_recompute() -> int:
    """All-reduces in one Transformer layer whose forward runs twice (full recomputation): 2 + 2 + 2."""
    return all_reduces_per_layer() + FORWARD_ALL_REDUCES


def all_reduces_raw_input(L: int) -> int:
    """All-reduces of L Transformer layers in one step when nothing trainable sits below the first: 4 L - 1."""
    return all_reduces_per_layer() * whole("L", L) - 1


def transformer_layer_volume(T: int, H: int, t: int) -> Fraction:
    """Elements each GPU of a tensor group sends for one Transformer layer and one micro-batch.

        sent = 8 T H (t - 1) / t

    Four all-reduces of T x H, forward and backward together. Papers write T as b s, micro-batch times sequence.
    Source: Narayanan et al. 2021, arXiv 2104.04473, section 3.2.
    """
    return all_reduces_per_layer() * _group_all_reduce(T, H, t)


def transformer_layer_recompute_volume(T: int, H: int, t: int) -> Fraction:
    """`transformer_layer_volume` with full recomputation: 12 T H (t - 1) / t, from six all-reduces."""
    return all_reduces_with_recompute() * _group_all_reduce(T, H, t)


def transformer_layer_recompute_limit(T: int, H: int) -> int:
    """What `transformer_layer_recompute_volume` comes close to as the group grows: 12 T H."""
    return 2 * all_reduces_with_recompute() * _activations(T, H)


def partitioned_activation_overhead() -> Fraction:
    """Extra traffic of partitioned activations over tensor parallel with full recomputation: 1 / 12.

    One all-gather of T x H a layer, against the six all-reduces of `transformer_layer_recompute_volume`.
    Source: Rajbhandari et al. 2020, arXiv 1910.02054, section 8.
    """
    return Fraction(1, 2 * all_reduces_with_recompute())


def sequence_parallel_layer_volume(T: int, H: int, t: int) -> Fraction:
    """Elements each GPU sends for one Transformer layer with sequence parallelism: 8 T H (t - 1) / t.

    Four all-gathers and four reduce-scatters take the place of four all-reduces: the same bytes.
    Source: Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.2.
    """
    return 8 * _group_all_gather(T, H, t)


def sequence_parallel_regather_volume(T: int, H: int, t: int) -> Fraction:
    """`sequence_parallel_layer_volume` and the two all-gathers of saved inputs in backward: 10 T H (t - 1) / t."""
    return 10 * _group_all_gather(T, H, t)


def _pairs(L: int) -> int:
    if whole("L", L) % 2:
        raise ValueError(f"L = {L}: layers come in pairs, a column split and then a row split, so L must be even")
    return L // 2


def _activations(T: int, H: int) -> int:
    return whole("T", T) * whole("H", H)


def _group_all_reduce(T: int, H: int, t: int) -> Fraction:
    return ring_all_reduce(_activations(T, H), whole("t", t))


def _group_all_gather(T: int, H: int, t: int) -> Fraction:
    return all_gather(_activations(T, H), whole("t", t))
