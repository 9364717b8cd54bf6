"""Time of all-reduces in the alpha-beta model."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.theory import FORMULAS, latency
from app.theory.latency import Point, fit_alpha_beta
from kernels import schedule
from kernels.spec import COLLECTIVES

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


SECONDS = {
    "all_reduce": latency.ring_all_reduce_seconds,
    "reduce_scatter": latency.reduce_scatter_seconds,
    "all_gather": latency.all_gather_seconds,
    "broadcast": latency.broadcast_seconds,
    "all_to_all": latency.all_to_all_seconds,
    "send_recv": latency.send_recv_seconds,
}


def test_every_collective_that_runs_has_a_time() -> None:
    assert set(SECONDS) == set(COLLECTIVES)
    assert {f"latency.{function.__name__}" for function in SECONDS.values()} <= set(FORMULAS)


@pytest.mark.parametrize("collective", SECONDS)
@given(P=st.integers(1, 24), each=st.integers(0, 10**6), alpha=ALPHAS, B=BANDWIDTHS)
def test_a_collective_takes_the_longest_message_of_each_step_of_its_plan(
        collective: str, P: int, each: int, alpha: float, B: float) -> None:
    plan, n = schedule.COLLECTIVE_PLANS[collective](P), each * P
    chunk = schedule.chunk_sizes(n, plan.num_chunks)
    steps = sum(max(alpha + chunk[transfer.chunk] / B for transfer in step) for step in plan.steps)
    assert math.isclose(SECONDS[collective](P, n, alpha, B), steps, rel_tol=1e-9)


def test_a_mebibyte_on_eight_gpus_at_5_microseconds_and_25_gigabytes_a_second() -> None:
    """Two halves of the published 143.4 microseconds of an all-reduce; 41.94 microseconds is the buffer over the link."""
    times = {name: round(seconds(8, 2**20, 5e-6, 25e9) * 1e6, 2) for name, seconds in SECONDS.items()}
    assert times == {"all_reduce": 143.4, "reduce_scatter": 71.7, "all_gather": 71.7, "all_to_all": 71.7,
                     "broadcast": 140.83, "send_recv": 46.94}


def test_one_gpu_waits_for_nobody() -> None:
    assert [seconds(1, 1024, 5e-6, 25e9) for seconds in SECONDS.values()] == [0] * 6
    assert latency.double_tree_seconds(1, 1024, 5e-6, 25e9) == 0
    assert latency.ring_steps_all_reduce(1) == latency.ring_steps_all_gather(1) == 0


@given(nodes=st.integers(2, 64), local=st.integers(1, 8))
def test_a_tree_beats_a_ring_in_steps_between_many_nodes(nodes: int, local: int) -> None:
    ring = latency.nccl_ring_microseconds(nodes * local, nodes, base=1.0, hardware=1.0, overhead=1.0, network=10.0)
    tree = latency.nccl_tree_microseconds(nodes * local, nodes, base=1.0, hardware=1.0, network=10.0)
    assert tree <= ring


SIZES = (1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 2_097_152, 4_194_304)


def measured(P: int, alpha: float, B: float, factors: tuple[float, ...] = (1.0,) * len(SIZES)) -> list[Point]:
    times = [latency.ring_all_reduce_seconds(P, n, alpha, B) for n in SIZES]
    return [Point(n, factor * seconds) for n, factor, seconds in zip(SIZES, factors, times, strict=True)]


@given(P=st.integers(2, 64), alpha=st.floats(1e-5, 1e-3), B=st.floats(1e8, 1e10))
def test_a_fit_finds_the_alpha_and_beta_that_made_the_times(P: int, alpha: float, B: float) -> None:
    fit = fit_alpha_beta(P, measured(P, alpha, B))
    assert math.isclose(fit.alpha_seconds, alpha, rel_tol=1e-5)
    assert math.isclose(fit.bandwidth_bytes_per_second, B, rel_tol=1e-5)
    assert all(abs(residual.share) < 1e-5 for residual in fit.residuals)


@given(factors=st.tuples(*[st.floats(0.9, 1.1)] * len(SIZES)))
def test_times_that_scatter_by_a_tenth_are_met_within_a_fifth(factors: tuple[float, ...]) -> None:
    fit = fit_alpha_beta(4, measured(4, 1e-4, 1e9, factors))
    assert [residual.point.n for residual in fit.residuals] == list(SIZES)
    assert all(abs(residual.share) < 0.25 for residual in fit.residuals)
    for residual in fit.residuals:
        assert residual.seconds == residual.point.seconds - fit.seconds(residual.point.n)


def test_no_other_alpha_or_beta_is_closer_in_relative_error() -> None:
    fit = fit_alpha_beta(4, measured(4, 1e-4, 1e9, (1.3, 0.8, 1.1, 1.0, 0.9, 1.2, 0.7, 1.1)))

    def error(alpha: float, B: float) -> float:
        return sum((1 - latency.ring_all_reduce_seconds(4, one.point.n, alpha, B) / one.point.seconds) ** 2
                   for one in fit.residuals)

    best = error(fit.alpha_seconds, fit.bandwidth_bytes_per_second)
    for nudge in (0.99, 1.01):
        assert error(fit.alpha_seconds * nudge, fit.bandwidth_bytes_per_second) > best
        assert error(fit.alpha_seconds, fit.bandwidth_bytes_per_second * nudge) > best


@pytest.mark.parametrize(("P", "points", "message"), [
    (1, [Point(8, 1.0), Point(16, 2.0)], "P = 1: must be a whole number, 2 or more"),
    (4, [Point(8, 1.0), Point(8, 2.0)], "points = 2: give at least two different sizes"),
    (4, [Point(8, 1.0), Point(16, 0.0)], "seconds = 0.0: must be a number above 0"),
    (4, [Point(1024, 2.0), Point(4096, 1.0)], "no positive latency and bandwidth"),
])
def test_times_that_no_line_fits_are_refused(P: int, points: list[Point], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_alpha_beta(P, points)


@given(calls=st.lists(st.floats(1e-6, 1.0), min_size=latency.LEAST_CALLS, max_size=200))
def test_a_tenth_of_the_calls_are_faster_than_the_time_that_counts(calls: list[float]) -> None:
    summed = latency.timed(4096, calls)
    ordered, place = sorted(calls), (len(calls) + 1) // 10
    assert ordered[place - 1] <= summed.first_decile_seconds <= ordered[place] or math.isclose(
        summed.first_decile_seconds, ordered[place - 1])  # interpolating may round
    assert (summed.fastest_seconds, summed.calls) == (min(calls), len(calls))
    assert summed.point == Point(4096, summed.first_decile_seconds)


def test_a_tenth_of_fewer_than_ten_calls_is_refused() -> None:
    with pytest.raises(ValueError, match="calls = 9: time at least 10"):
        latency.timed(4096, [1.0] * 9)


def test_busbw_is_algbw_rescaled() -> None:
    assert latency.algbw(10**9, 0.5) == 2e9
    assert latency.busbw(4, 10**9, 0.5) == 3e9
    assert latency.busbw(8, 10**9, 0.5) == 3.5e9


@given(P=st.integers(2, 512), alpha=ALPHAS, B=BANDWIDTHS, n=st.integers(0, 10**9))
def test_one_tree_without_overlap_is_never_faster_than_the_double_tree(P: int, alpha: float, B: float, n: int) -> None:
    single = latency.single_tree_seconds(P, n, alpha, B)
    assert single >= latency.double_tree_seconds(P, n, alpha, B) * (1 - 1e-12)
    assert math.isclose(single, 2 * math.ceil(math.log2(P)) * (alpha + n / B))


def test_a_data_sheet_that_adds_up_both_directions_says_twice_as_much() -> None:
    assert latency.one_way_bandwidth(900e9) == 450e9
