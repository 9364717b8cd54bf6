"""A timing run over many sizes, and alpha and beta out of its report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.runs import timing
from app.runs.launch import LocalLauncher
from app.runs.results import compare
from app.runs.sharing import request_faults
from app.theory.latency import Point, ring_all_reduce_seconds, timed
from kernels.spec import MAX_WORLD_SIZE, RunReport
from tests.runs import made_up

ALPHA, BANDWIDTH = 50e-6, 2e9
SHORT = (1024, 65_536)


@pytest.fixture(scope="module")
def real(launcher: LocalLauncher) -> RunReport:
    return launcher.run(timing.timing_run(2, sizes=SHORT))


def quiet(P: int, seconds: Callable[[int], float]) -> RunReport:
    return made_up.timed_report(timing.timing_run(P), seconds)


def test_at_least_eight_sizes_are_timed_and_each_may_be_asked_for_on_every_world() -> None:
    assert len(timing.SIZES) >= 8
    for world_size in range(timing.LEAST_WORLD_SIZE, MAX_WORLD_SIZE + 1):
        assert request_faults(timing.timing_run(world_size), MAX_WORLD_SIZE) == []


def test_a_machine_that_keeps_to_the_model_gives_its_alpha_and_beta() -> None:
    report = quiet(4, lambda n: ring_all_reduce_seconds(4, n, ALPHA, BANDWIDTH))
    fit = timing.fit(report)
    assert fit.alpha_seconds == pytest.approx(ALPHA)
    assert fit.bandwidth_bytes_per_second == pytest.approx(BANDWIDTH)
    assert [residual.share for residual in fit.residuals] == pytest.approx([0.0] * len(timing.SIZES), abs=1e-6)
    assert timing.has_fit(report)
    told = timing.fit_json(report)
    assert told["alpha_seconds"] == pytest.approx(ALPHA)
    assert [one["predicted_seconds"] for one in told["points"]] == pytest.approx(
        [one["first_decile_seconds"] for one in told["points"]])


def test_times_that_fall_with_size_have_points_and_no_line() -> None:
    report = quiet(2, lambda n: 1 / n)
    assert not timing.has_fit(report)
    told = timing.fit_json(report)
    assert told["alpha_seconds"] is told["bandwidth_bytes_per_second"] is told["points"][0]["predicted_seconds"] is None
    assert len(told["points"]) == len(timing.SIZES)


def test_sizes_come_smallest_first_whatever_the_order_of_the_run() -> None:
    report = quiet(2, float)
    backwards = replace(report, experiments=report.experiments[::-1])
    assert timing.timed_sizes(backwards) == timing.timed_sizes(report)


@pytest.mark.torchrun
def test_a_point_is_the_bytes_of_the_buffer_and_the_first_decile_of_its_slowest_ranks(real: RunReport) -> None:
    for size, one, summed in zip(SHORT, real.experiments, timing.timed_sizes(real), strict=True):
        assert one.calls_by_rank == ({"all_reduce": timing.CALLS},) * 2
        slowest = timing.call_seconds(one)
        assert len(slowest) == timing.CALLS
        own = [interval.end_seconds - interval.start_seconds for interval in one.timeline if interval.rank == 1]
        assert all(call >= mine for call, mine in zip(slowest, own, strict=True))
        assert summed == timed(4 * size, slowest)
        assert summed.point == Point(4 * size, summed.first_decile_seconds)


@pytest.mark.torchrun
def test_a_timing_run_says_neither_equal_nor_differs_of_bytes_it_did_not_count(real: RunReport) -> None:
    for result in compare(real):
        assert result.verdict == "inconclusive"
