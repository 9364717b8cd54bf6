"""What is recorded for figures: the slowest rank of each call, and no reading that others contradict."""

from __future__ import annotations

import pytest

from app.runs.record import _bytes_row, _calls
from kernels.spec import Environment, Experiment, ExperimentReport, Interval, RunReport

EXPERIMENT = Experiment("ring_all_reduce", options={"collective": "all_reduce", "implementation": "library", "elements": 8})
ENVIRONMENT = Environment(torch="2", python="3", backend="gloo", transport="TCP", launcher="launch host", platform="Linux",
                          cpu_count=2, gpu_count=0, started_at="2026-01-01T00:00:00+00:00")


def report(agreeing: int = 3, settled: bool = True) -> ExperimentReport:
    timeline = tuple(Interval(rank, "all_reduce", start, start + seconds) for rank, calls in enumerate(([1.0, 2.0], [1.5, 1.0]))
                     for start, seconds in zip((0.0, 10.0), calls, strict=True))
    return ExperimentReport(
        experiment=EXPERIMENT, dtype="fp32", settled=settled, repetitions=3, agreeing=agreeing,
        payload_matrix=((0, 32), (32, 0)), wire_matrix=None, calls_payload_bytes_by_rank=None, calls_by_rank=None,
        memory_by_rank=(), timeline=timeline,
        step_seconds=3.0, weights_max_difference=0.0, weights_tolerance=0.0)


def test_a_call_takes_as_long_as_its_slowest_rank() -> None:
    run = RunReport(2, (report(),), ENVIRONMENT, {})
    assert [(length, list(seconds)) for length, seconds in _calls(run)] == [(8, [1.5, 2.0])]


def test_a_row_names_the_run_and_what_each_rank_sent() -> None:
    assert _bytes_row(2, report()) == {"P": 2, **EXPERIMENT.options, "payload_bytes_by_rank": (32, 32)}


@pytest.mark.parametrize(("agreeing", "settled"), [(2, True), (3, False)])
def test_readings_that_disagree_are_not_recorded(agreeing: int, settled: bool) -> None:
    with pytest.raises(SystemExit, match="record again"):
        _bytes_row(2, report(agreeing, settled))
