"""A timing run over many sizes, and alpha and beta out of its report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.runs import timing
from app.runs.launch import LocalLauncher
from app.theory.latency import Point, ring_all_reduce_seconds
from kernels.spec import MAX_WORLD_SIZE, RunReport, run_faults

ALPHA, BANDWIDTH = 50e-6, 2e9
SHORT = (256, 65_536)


@pytest.fixture(scope="module")
def real(launcher: LocalLauncher) -> RunReport:
    return launcher.run(replace(timing.timing_run(2, sizes=SHORT), repetitions=3))


def test_at_least_eight_sizes_are_timed_and_each_may_run_on_every_world() -> None:
    assert len(timing.SIZES) >= 8
    for world_size in range(2, MAX_WORLD_SIZE + 1):
        assert run_faults(timing.timing_run(world_size)) == []


def test_short_buffers_are_sent_often_and_long_ones_once() -> None:
    assert [timing.calls_in_a_step(size) for size in timing.SIZES] == [10, 10, 10, 10, 4, 2, 1, 1, 1]


@pytest.mark.torchrun
def test_a_point_is_the_bytes_of_the_buffer_and_the_time_of_one_call(real: RunReport) -> None:
    for size, experiment in zip(SHORT, real.experiments, strict=True):
        calls = timing.calls_in_a_step(size)
        assert experiment.calls_by_rank == ({"all_reduce": calls},) * 2
        assert timing.measured_point(experiment) == Point(4 * size, experiment.step_seconds / calls)


@pytest.mark.torchrun
def test_a_machine_that_keeps_to_the_model_gives_its_alpha_and_beta(real: RunReport) -> None:
    """A real report with the times put in: what a quiet machine with these constants would have measured."""
    timed = []
    for size, one in zip(SHORT, real.experiments, strict=True):
        call_seconds = ring_all_reduce_seconds(2, 4 * size, ALPHA, BANDWIDTH)
        timed.append(replace(one, step_seconds=timing.calls_in_a_step(size) * call_seconds))
    fit = timing.fit(replace(real, experiments=tuple(timed)))
    assert fit.alpha_seconds == pytest.approx(ALPHA)
    assert fit.bandwidth_bytes_per_second == pytest.approx(BANDWIDTH)
