"""How long a collective takes: the alpha-beta model, fitted to measured times of all-reduces; step counts inside NCCL."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from app.theory.checks import positive, quotient, whole
from app.theory.collectives import busbw_all_reduce


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


def single_tree_seconds(P: int, n: int, alpha: float, B: float) -> float:
    """Seconds of an all-reduce up one binary tree and down again, the whole buffer in each message.

        time = 2 ceil(log2(P)) (alpha + n / B)

    Nothing overlaps: a level waits for the one below. Raises ValueError as `ring_all_reduce_seconds`.
    The same cost model: a reduce and a broadcast along binomial trees.
    """
    positive("alpha", alpha)
    positive("B", B)
    return float(2 * (whole("P", P) - 1).bit_length() * (alpha + whole("n", n, 0) / B))


def reduce_scatter_seconds(P: int, n: int, alpha: float, B: float) -> float:
    """Seconds of a ring reduce-scatter whose input has n bytes on each GPU.

        time = (P - 1) alpha + (P - 1) / P * n / B

    P - 1 steps, in each of which every GPU sends one of P chunks to its neighbour; adding up is free.
    Raises ValueError as `ring_all_reduce_seconds`. Derived from Thakur, Rabenseifner & Gropp 2005, pairwise exchange.
    """
    return _chunk_a_step_seconds(P, n, alpha, B)


def all_gather_seconds(P: int, n: int, alpha: float, B: float) -> float:
    """Seconds of a ring all-gather whose result has n bytes.

        time = (P - 1) alpha + (P - 1) / P * n / B

    Raises ValueError as `ring_all_reduce_seconds`. Source: Thakur, Rabenseifner & Gropp 2005, ring.
    """
    return _chunk_a_step_seconds(P, n, alpha, B)


def all_to_all_seconds(P: int, n: int, alpha: float, B: float) -> float:
    """Seconds of an all-to-all in which each GPU hands out n bytes, a block of n / P in each of P - 1 steps.

        time = (P - 1) alpha + (P - 1) / P * n / B

    In step k every GPU sends straight to the one k places on; its own block stays. Raises ValueError as
    `ring_all_reduce_seconds`. Derived from Thakur, Rabenseifner & Gropp 2005, pairwise exchange.
    """
    return _chunk_a_step_seconds(P, n, alpha, B)


def _chunk_a_step_seconds(P: int, n: int, alpha: float, B: float) -> float:
    positive("alpha", alpha)
    positive("B", B)
    return float((whole("P", P) - 1) * (alpha + whole("n", n, 0) / P / B))


def broadcast_seconds(P: int, n: int, alpha: float, B: float) -> float:
    """Seconds of a broadcast of n bytes along a binomial tree, the whole buffer in each message.

        time = ceil(log2(P)) (alpha + n / B)

    In each step every GPU that has the buffer passes it on. Raises ValueError as `ring_all_reduce_seconds`.
    Source: Thakur, Rabenseifner & Gropp 2005, binomial tree.
    """
    positive("alpha", alpha)
    positive("B", B)
    return float((whole("P", P) - 1).bit_length() * (alpha + whole("n", n, 0) / B))


def send_recv_seconds(P: int, n: int, alpha: float, B: float) -> float:
    """Seconds in which rank 0 sends n bytes to rank 1: alpha + n / B, the model itself; 0 on one GPU.

    Raises ValueError as `ring_all_reduce_seconds`. Source: Thakur, Rabenseifner & Gropp 2005, cost model.
    """
    positive("alpha", alpha)
    positive("B", B)
    return float(alpha + whole("n", n, 0) / B) if whole("P", P) > 1 else 0.0


def algbw(n: int, seconds: float) -> float:
    """Bytes of the buffer per second of the call: n / seconds. Not what any link carries."""
    return float(whole("n", n, 0) / positive("seconds", seconds))


def busbw(P: int, n: int, seconds: float) -> float:
    """algbw of an all-reduce times 2 (P - 1) / P: what each GPU sends per second in a ring.

    Comparable over P, and with the bandwidth of a link in one direction. Source: NVIDIA nccl-tests, doc/PERFORMANCE.md.
    """
    return float(busbw_all_reduce(P) * algbw(n, seconds))


def one_way_bandwidth(both_ways: float) -> float:
    """Bandwidth of a link in one direction, where a data sheet adds up both: half. 900 GB/s of NVLink are 450 out, 450 in."""
    return float(positive("both_ways", both_ways) / 2)


@dataclass(frozen=True)
class Point:
    """One measured all-reduce: n bytes of buffer, and the time of a call."""

    n: int
    seconds: float


@dataclass(frozen=True)
class Timed:
    """Many calls with one size of buffer. A fit goes by `first_decile_seconds`: a tenth of the calls were faster.

    The model knows no other process that wants the processor, so fast calls are nearest to it. Not the single fastest one:
    in the times recorded for the lesson's figure, on 2 ranks, 4 KiB once took half as long as 8 KiB ever did.
    """

    n: int
    fastest_seconds: float
    first_decile_seconds: float
    median_seconds: float
    calls: int

    @property
    def point(self) -> Point:
        """What the fit is given."""
        return Point(self.n, self.first_decile_seconds)


LEAST_CALLS = 10  # a tenth of fewer is less than one call


def timed(n: int, calls: Sequence[float]) -> Timed:
    """The seconds of each call with n bytes, summed up. Raises ValueError if there are fewer than LEAST_CALLS."""
    if len(calls) < LEAST_CALLS:
        raise ValueError(f"calls = {len(calls)}: time at least {LEAST_CALLS}")
    return Timed(whole("n", n), min(calls), statistics.quantiles(calls, n=10)[0], statistics.median(calls), len(calls))


@dataclass(frozen=True)
class Residual:
    """A point beside the fitted line."""

    point: Point
    predicted_seconds: float

    @property
    def seconds(self) -> float:
        """Measured less predicted."""
        return self.point.seconds - self.predicted_seconds

    @property
    def share(self) -> float:
        """The same as a share of the measured time: what the fit makes small."""
        return self.seconds / self.point.seconds


@dataclass(frozen=True)
class Fit:
    """The alpha-beta model of one machine, and how far each point is from it."""

    P: int
    alpha_seconds: float
    bandwidth_bytes_per_second: float
    residuals: tuple[Residual, ...]

    def seconds(self, n: int) -> float:
        """Predicted time of a ring all-reduce of n bytes."""
        return ring_all_reduce_seconds(self.P, n, self.alpha_seconds, self.bandwidth_bytes_per_second)


def fit_alpha_beta(P: int, points: Sequence[Point]) -> Fit:
    """alpha and B that bring `ring_all_reduce_seconds` closest to measured times.

        minimise over alpha, B:  sum over points of ((time - 2 (P - 1) alpha - 2 (P - 1) / P * n / B) / time)^2

    Least squares of the *relative* error: sizes span a factor of millions, and in seconds the largest alone would decide.
    Raises ValueError if P < 2, fewer than two different sizes are given, a time is not above 0, or the best line through the
    points has no positive latency and bandwidth: then these times do not grow with size as the model says.
    """
    messages = ring_steps_all_reduce(whole("P", P, 2))
    if len({whole("n", point.n) for point in points}) < 2:
        raise ValueError(f"points = {len(points)}: give at least two different sizes")
    # Divided by the time, each point asks for messages * alpha / time + slope * n / time = 1.
    inverse = [1 / positive("seconds", point.seconds) for point in points]
    scaled = [point.n / point.seconds for point in points]
    a, b, d = _dot(inverse, inverse), _dot(inverse, scaled), _dot(scaled, scaled)
    determinant = a * d - b * b
    latency = (d * sum(inverse) - b * sum(scaled)) / determinant
    slope = (a * sum(scaled) - b * sum(inverse)) / determinant
    if latency <= 0 or slope <= 0:
        raise ValueError(f"points = {len(points)}: no positive latency and bandwidth fit these times; measure more sizes, on a "
                         "quieter machine")
    alpha, bandwidth = latency / messages, messages / (P * slope)
    residuals = tuple(Residual(point, ring_all_reduce_seconds(P, point.n, alpha, bandwidth)) for point in points)
    return Fit(P, alpha, bandwidth, residuals)


def _dot(first: Sequence[float], second: Sequence[float]) -> float:
    return sum(one * other for one, other in zip(first, second, strict=True))


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
