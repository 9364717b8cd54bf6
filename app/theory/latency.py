"""How long an all-reduce takes: the alpha-beta model for ring and tree, and the step counts inside NCCL."""

from __future__ import annotations

import math

from app.theory.checks import positive, quotient, whole


def ring_all_reduce_seconds(P: int, n: int, alpha: float, B: float) -> float:
    """Seconds of a ring all-reduce.

        time = 2 (P - 1) alpha + 2 (P - 1) / P * n / B

    alpha seconds a message, n bytes of buffer, B bytes per second in one direction of a link.
    Raises ValueError if P < 1, n < 0, alpha <= 0 or B <= 0.
    Source: the alpha-beta (Hockney) cost model, as in Thakur, Rabenseifner & Gropp 2005.
    """
    positive("alpha", alpha)
    positive("B", B)
    return float(2 * (whole("P", P) - 1) * alpha + 2 * (P - 1) / P * whole("n", n, 0) / B)


def double_tree_seconds(P: int, n: int, alpha: float, B: float) -> float:
    """Seconds of an all-reduce over two pipelined binary trees.

        time = 2 log2(P) alpha + 2 n / B

    Each tree carries half of the buffer up and down again. A smooth curve through the powers of two; 0 for P = 1, which
    sends nothing. Raises ValueError as `ring_all_reduce_seconds`. Source: NVIDIA/nccl, src/graph/tuning.cc.
    """
    positive("alpha", alpha)
    positive("B", B)
    if whole("P", P) == 1:
        return 0.0
    return float(2 * math.log2(P) * alpha + 2 * whole("n", n, 0) / B)


def crossover_bytes(P: int, alpha: float, B: float) -> float:
    """Bytes above which the ring is faster than the double tree.

        n = alpha B P (P - 1 - log2(P))

    From ring_all_reduce_seconds = double_tree_seconds. Raises ValueError if P < 1, alpha <= 0 or B <= 0.
    """
    positive("alpha", alpha)
    positive("B", B)
    return float(alpha * whole("P", P) * (P - 1 - math.log2(P)) * B)


def ring_steps_all_reduce(P: int) -> int:
    """Steps of a ring all-reduce, one message a step: 2 (P - 1)."""
    return 2 * (whole("P", P) - 1)


def ring_steps_all_gather(P: int) -> int:
    """Steps of a ring all-gather or reduce-scatter, one message a step: P - 1."""
    return whole("P", P) - 1


def nccl_tree_microseconds(P: int, nodes: int, base: float, hardware: float, network: float) -> float:
    """Latency NCCL's tuner expects of a tree all-reduce of a small message, in microseconds.

        time = base + 2 ((P / nodes - 1) hardware + log2(nodes) network)

    Inside a node the tree is a chain, between nodes a binary tree. The tuner's extra `latencyInter` is left out.
    Raises ValueError if nodes does not divide P, or a latency is not above 0. Source: NVIDIA/nccl, src/graph/tuning.cc.
    """
    local = quotient("nodes", whole("nodes", nodes), "P", whole("P", P))
    for name, value in (("base", base), ("hardware", hardware), ("network", network)):
        positive(name, value)
    return base + 2 * ((local - 1) * hardware + math.log2(nodes) * network)


def nccl_ring_microseconds(P: int, nodes: int, base: float, hardware: float, overhead: float, network: float) -> float:
    """Latency NCCL's tuner expects of a ring all-reduce of a small message over several nodes, in microseconds.

        time = base + (2 (P - 1) - 2 nodes) max(hardware, overhead) + 2 nodes network

    Of the 2 (P - 1) steps, 2 nodes cross the network. The tuner's extra `latencyInter` is left out.
    Raises ValueError if nodes < 2 or does not divide P, or a latency is not above 0. Source: src/graph/tuning.cc.
    """
    quotient("nodes", whole("nodes", nodes, 2), "P", whole("P", P))
    for name, value in (("base", base), ("hardware", hardware), ("overhead", overhead), ("network", network)):
        positive(name, value)
    return base + (2 * (P - 1) - 2 * nodes) * max(hardware, overhead) + 2 * nodes * network
