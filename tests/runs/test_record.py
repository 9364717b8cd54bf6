"""What is recorded for figures: calls summed up as those of a reader's run are, and no reading that others contradict."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from app.figures import alpha_beta, overlap
from app.runs import record, timing
from app.runs.record import _bytes_row, in_todays_words, logs_of_overlap, times_of_all_reduce
from app.theory import latency
from kernels.spec import Environment, Experiment, ExperimentReport, Interval, RunReport, RunSpec
from tests.runs.made_up import MadeUpLauncher, timed_report
from tests.runs.made_up import report as made_up_report

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
    assert timing.call_seconds(report()) == [1.5, 2.0]


def test_times_are_recorded_from_the_run_of_a_reader_and_summed_up_as_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the file that ships has the same shape."""
    launches: list[RunReport] = []

    def make(spec: RunSpec) -> RunReport:
        launches.append(timed_report(spec, lambda n: (1 + len(launches)) * (1e-4 + n * 1e-9)))
        return launches[-1]

    monkeypatch.setattr(record, "LocalLauncher", lambda: MadeUpLauncher(make=make))
    made = times_of_all_reduce()
    rows = {(row["P"], row["n"]): row for row in made["rows"]}
    for P in record.TIMES_WORLD_SIZES:
        mine = [launch for launch in launches if launch.P == P]
        assert len(mine) == record.TIMES_LAUNCHES
        for place, one in enumerate(timing.timed_sizes(mine[0])):
            calls = [call for launch in mine for call in timing.call_seconds(launch.experiments[place])]
            assert rows[P, one.n] == {"P": P, **asdict(latency.timed(one.n, calls))}
    shipped = alpha_beta.recording()
    assert [list(row) for row in shipped["rows"]] == [list(row) for row in made["rows"]]
    assert [(row["P"], row["n"]) for row in shipped["rows"]] == [(row["P"], row["n"]) for row in made["rows"]]
    assert list(shipped) == list(made)


def test_the_log_that_is_kept_is_the_one_in_the_middle_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the file that ships is of the same runs in the same shape."""
    took = [0.2, 0.1, 0.5, 0.9, 0.3]
    launches: list[RunReport] = []

    def make(spec: RunSpec) -> RunReport:
        timeline = (Interval(0, "backward", 0.0, 9.0), Interval(0, "all_reduce of bucket 0", 1.0, 1.0 + took[len(launches)]))
        made = made_up_report(spec)
        launches.append(replace(made, experiments=tuple(replace(one, timeline=timeline) for one in made.experiments)))
        return launches[-1]

    monkeypatch.setattr(record, "LocalLauncher", lambda: MadeUpLauncher(make=make))
    monkeypatch.setattr(record, "OVERLAP_LAUNCHES", len(took))
    kept = logs_of_overlap()
    assert [one["measured"]["timeline"][1]["end_seconds"] for one in kept] == [1.3] * 3
    shipped = json.loads(overlap.RECORDED.read_bytes())
    assert [one["spec"] for one in shipped] == [one["spec"] for one in kept]
    assert [list(one) for one in shipped] == [list(one) for one in kept]


def test_a_row_names_the_run_and_what_each_rank_sent() -> None:
    assert _bytes_row(2, report()) == {"P": 2, **EXPERIMENT.options, "payload_bytes_by_rank": (32, 32)}


@pytest.mark.parametrize(("agreeing", "settled"), [(2, True), (3, False)])
def test_readings_that_disagree_are_not_recorded(agreeing: int, settled: bool) -> None:
    with pytest.raises(SystemExit, match="record again"):
        _bytes_row(2, report(agreeing, settled))


PROJECT = Path(__file__).parents[2]
RECORDED = [*sorted(PROJECT.glob("lessons/*/recorded*.json")), PROJECT / "app/figures/recorded/loss_reduction.json"]


@pytest.mark.parametrize("file", RECORDED, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_recorded_runs_are_told_in_todays_words(file: Path) -> None:
    """Where this fails after a change of formulas or sentences: python -m app.runs.record words FILE"""
    for one in json.loads(file.read_bytes()):
        assert in_todays_words(one) == one
