"""Elements that each collective sends: the ideal ring, its padded form, our own ring by rank, and bus bandwidth.

Everywhere s is the *full* buffer: what an all-reduce sums, what a reduce-scatter takes in, what an all-gather gives out,
what one rank hands to an all-to-all, what a broadcast spreads. What gloo does instead stands in `gloo.py`.
Source of the ring: Patarasuk & Yuan 2009, doi 10.1016/j.jpdc.2008.09.002; of the buffer sizes and factors: NVIDIA
nccl-tests, doc/PERFORMANCE.md.
"""

from __future__ import annotations

from fractions import Fraction

from app.theory.checks import whole
from kernels.schedule import chunk_sizes


def ring_factor(P: int) -> Fraction:
    """Copies of the buffer that each GPU sends in a ring all-reduce.

        factor = 2 (P - 1) / P

    0 on one GPU, 3/2 on four, below 2 for every P. Raises ValueError if P < 1.
    """
    whole("P", P)
    return Fraction(2 * (P - 1), P)


def ring_all_reduce(s: int, P: int) -> Fraction:
    """Elements one GPU sends in a ring all-reduce of s elements.

        sent = 2 (P - 1) / P * s

    A mean over the P GPUs; each sends exactly this where the buffer is cut into P equal chunks.
    Raises ValueError if s < 0 or P < 1.
    """
    return ring_factor(P) * whole("s", s, 0)


def ring_all_reduce_total(s: int, P: int) -> int:
    """Elements all GPUs together send in a ring all-reduce of s elements: 2 (P - 1) s, exact for every cut of s."""
    return 2 * (whole("P", P) - 1) * whole("s", s, 0)


def ring_all_reduce_padded(s: int, P: int) -> int:
    """Elements each GPU sends when the buffer is filled up to equal chunks: 2 (P - 1) ceil(s / P)."""
    return 2 * reduce_scatter_padded(s, P)


def reduce_scatter(s: int, P: int) -> Fraction:
    """Elements one GPU sends in a ring reduce-scatter whose input has s elements: (P - 1) / P * s, a mean over GPUs."""
    return Fraction(reduce_scatter_total(s, P), P)


def reduce_scatter_total(s: int, P: int) -> int:
    """Elements all GPUs together send in a ring reduce-scatter of s elements: (P - 1) s."""
    return (whole("P", P) - 1) * whole("s", s, 0)


def reduce_scatter_padded(s: int, P: int) -> int:
    """Elements each GPU sends in a reduce-scatter of equal, padded chunks: (P - 1) ceil(s / P)."""
    return (whole("P", P) - 1) * padded_chunk(s, P)


def all_gather(s: int, P: int) -> Fraction:
    """Elements one GPU sends in a ring all-gather whose result has s elements: (P - 1) / P * s, a mean over GPUs.

    s is the gathered size, not the s / P elements that each GPU brings.
    """
    return Fraction(all_gather_total(s, P), P)


def all_gather_total(s: int, P: int) -> int:
    """Elements all GPUs together send in an all-gather whose result has s elements: (P - 1) s."""
    return (whole("P", P) - 1) * whole("s", s, 0)


def all_gather_padded(s: int, P: int) -> int:
    """Elements each GPU sends in an all-gather of equal, padded chunks: (P - 1) ceil(s / P)."""
    return (whole("P", P) - 1) * padded_chunk(s, P)


def all_to_all(s: int, P: int) -> Fraction:
    """Elements one GPU sends in a direct all-to-all of s elements per GPU: (P - 1) / P * s, its own block stays."""
    return Fraction(all_to_all_total(s, P), P)


def all_to_all_total(s: int, P: int) -> int:
    """Elements all GPUs together send in an all-to-all of s elements per GPU: (P - 1) s."""
    return (whole("P", P) - 1) * whole("s", s, 0)


def broadcast_total(s: int, P: int) -> int:
    """Elements all GPUs together send when s elements reach P - 1 others: (P - 1) s, whatever the route."""
    return (whole("P", P) - 1) * whole("s", s, 0)


def send_recv(s: int, P: int) -> int:
    """Elements rank 0 sends to rank 1: s, and 0 on one GPU, where there is no rank 1."""
    return whole("s", s, 0) if whole("P", P) > 1 else 0


def padded_chunk(s: int, P: int) -> int:
    """Elements of one of P equal chunks that hold s elements: ceil(s / P)."""
    return -(-whole("s", s, 0) // whole("P", P))


def padded_length(s: int, P: int) -> int:
    """s filled up to a multiple of P: ceil(s / P) P."""
    return padded_chunk(s, P) * P


# How our own collectives cut a buffer and who sends what, as closed forms: quick for thousands of GPUs, where the plans of
# kernels.schedule have P^2 messages. A test sums those plans and finds the same.


def balanced_chunks(s: int, P: int) -> tuple[int, ...]:
    """Sizes of P chunks of s elements: s // P each, the first s % P one longer."""
    return chunk_sizes(whole("s", s, 0), whole("P", P))


def own_reduce_scatter_by_rank(s: int, P: int) -> tuple[int, ...]:
    """Elements each rank sends in our ring reduce-scatter: every chunk but its own, number r, which it ends up with."""
    return tuple(s - chunk for chunk in balanced_chunks(s, P))


def own_all_gather_by_rank(s: int, P: int) -> tuple[int, ...]:
    """Elements each rank sends in our ring all-gather: every chunk but its right neighbour's, number (r + 1) mod P."""
    chunks = balanced_chunks(s, P)
    return tuple(s - chunks[(rank + 1) % P] for rank in range(P))


def own_all_reduce_by_rank(s: int, P: int) -> tuple[int, ...]:
    """Elements each rank sends in our ring all-reduce.

        sent[r] = 2 s - chunk[(r + 1) mod P] - chunk[(r + 2) mod P]

    The first half leaves rank r with chunk (r + 1) mod P, so ranks are shifted by one against the two halves alone.
    """
    chunks = balanced_chunks(s, P)
    return tuple(2 * s - chunks[(rank + 1) % P] - chunks[(rank + 2) % P] for rank in range(P))


def all_to_all_by_rank(s: int, P: int) -> tuple[int, ...]:
    """Elements each rank sends directly to the others when its s elements are cut in balanced blocks: all but its own."""
    return tuple(s - block for block in balanced_chunks(s, P))


def tree_broadcast_by_rank(s: int, P: int) -> tuple[int, ...]:
    """Elements each rank sends when rank 0 spreads s elements along a binomial tree.

        round i = 0, 1, ...: every rank r < 2^i sends s elements to r + 2^i, where that is below P

    So rank 0 sends ceil(log2 P) times; P = 4 sends 2 s, s, 0, 0. The total is (P - 1) s.
    gloo takes the same tree (gloo/broadcast.cc; measured for P = 3 to 8).
    """
    whole("s", s, 0)
    messages = [0] * whole("P", P)
    reached = 1
    while reached < P:
        for rank in range(min(reached, P - reached)):
            messages[rank] += 1
        reached *= 2
    return tuple(count * s for count in messages)


def send_recv_by_rank(s: int, P: int) -> tuple[int, ...]:
    """Elements each rank sends when rank 0 sends s elements to rank 1."""
    return (send_recv(s, P),) + (0,) * (P - 1)


# busbw = algbw * factor, algbw = full buffer / time. A rescaled algbw, not the speed of a wire.


def busbw_all_reduce(P: int) -> Fraction:
    """busbw / algbw of an all-reduce: 2 (P - 1) / P."""
    return ring_factor(P)


def busbw_reduce_scatter(P: int) -> Fraction:
    """busbw / algbw of a reduce-scatter: (P - 1) / P, for the full input."""
    return Fraction(whole("P", P) - 1, P)


def busbw_all_gather(P: int) -> Fraction:
    """busbw / algbw of an all-gather: (P - 1) / P, for the gathered result."""
    return Fraction(whole("P", P) - 1, P)


def busbw_all_to_all(P: int) -> Fraction:
    """busbw / algbw of an all-to-all: (P - 1) / P, for one GPU's buffer."""
    return Fraction(whole("P", P) - 1, P)


def busbw_broadcast(P: int) -> Fraction:
    """busbw / algbw of a broadcast: 1 for every P, because the root's link is the narrow place."""
    return Fraction(whole("P", P), P)


def busbw_all_reduce_in_network(P: int) -> Fraction:
    """busbw / algbw of an all-reduce that the switch adds up: (P - 1) / (P + 1).

    Listed in one revision of nccl-tests' PERFORMANCE.md; the shipped benchmark divides by 2 (P - 1) / P all the same,
    so a printed busbw above link speed says that the switch did the sum.
    """
    return Fraction(whole("P", P) - 1, P + 1)
