"""Time of all-reduces in the alpha-beta model."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from app.theory import latency

WORLDS = st.integers(3, 512)
ALPHAS = st.floats(1e-6, 1e-3)
BANDWIDTHS = st.floats(1e9, 1e12)


@given(P=WORLDS, alpha=ALPHAS, B=BANDWIDTHS)
def test_ring_and_double_tree_take_equally_long_at_the_crossover(P: int, alpha: float, B: float) -> None:
    size = round(latency.crossover_bytes(P, alpha, B))
    ring, tree = latency.ring_all_reduce_seconds(P, size, alpha, B), latency.double_tree_seconds(P, size, alpha, B)
    assert math.isclose(ring, tree, rel_tol=1e-6, abs_tol=1 / B)


@given(P=WORLDS, alpha=ALPHAS, B=BANDWIDTHS)
def test_the_tree_wins_below_the_crossover_and_the_ring_above(P: int, alpha: float, B: float) -> None:
    size = round(latency.crossover_bytes(P, alpha, B))
    small, large = size // 2, 2 * size
    assert latency.double_tree_seconds(P, small, alpha, B) < latency.ring_all_reduce_seconds(P, small, alpha, B)
    assert latency.ring_all_reduce_seconds(P, large, alpha, B) < latency.double_tree_seconds(P, large, alpha, B)


def test_one_gpu_waits_for_nobody() -> None:
    assert latency.ring_all_reduce_seconds(1, 1024, 5e-6, 25e9) == 0
    assert latency.double_tree_seconds(1, 1024, 5e-6, 25e9) == 0
    assert latency.ring_steps_all_reduce(1) == latency.ring_steps_all_gather(1) == 0


@given(nodes=st.integers(2, 64), local=st.integers(1, 8))
def test_a_tree_beats_a_ring_in_steps_between_many_nodes(nodes: int, local: int) -> None:
    ring = latency.nccl_ring_microseconds(nodes * local, nodes, base=1.0, hardware=1.0, overhead=1.0, network=10.0)
    tree = latency.nccl_tree_microseconds(nodes * local, nodes, base=1.0, hardware=1.0, network=10.0)
    assert tree <= ring
