"""The measurements that ship with figures: `python -m app.runs.record bytes|times|overlap FILE`.

Bytes are the same on every machine of a backend; times and event logs are those of the machine at hand, so record them when it
is quiet.

`python -m app.runs.record words FILE ...` brings the recorded runs of lessons up to date with the formulas: predictions, causes
and sentences are made anew, what was measured stays.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from app.runs.launch import LocalLauncher
from app.runs.results import Result, compare, result_json
from app.runs.timing import buffer_bytes, call_seconds, timing_run
from app.theory.latency import Timed, timed
from kernels.spec import COLLECTIVES, IMPLEMENTATIONS, Experiment, ExperimentReport, RunSpec, report_from_json

BYTES_WORLD_SIZES = range(2, 9)
BYTES_LENGTHS = (32, 1680)  # the gradient of the first lesson; a length that 2 P divides for every P up to 8
TIMES_WORLD_SIZES = (2, 3, 4)
TIMES_LAUNCHES = 6
SECONDS = 300.0
OVERLAP_LAUNCHES = 51  # odd, so that one is in the middle
BUCKET_BYTES = 64 * 1024
OVERLAP = (  # in the order of the figure's choice
    Experiment("ddp", L=16, H=64, T=64, options={"bucket_bytes": BUCKET_BYTES}),
    Experiment("ddp", L=16, H=64, T=64),
    Experiment("data_parallel", L=16, H=64, T=64, options={"sync": "bucketed", "bucket_bytes": BUCKET_BYTES}),
)


def bytes_of_collectives() -> dict[str, Any]:
    """Payload that each rank sends in every collective, by hand and through the library."""
    rows: list[dict[str, Any]] = []
    with LocalLauncher() as launcher:
        for world_size in BYTES_WORLD_SIZES:
            for length in BYTES_LENGTHS:
                report = launcher.run(RunSpec(world_size, _every_collective(length), time_limit_seconds=SECONDS))
                rows += [_bytes_row(world_size, one) for one in report.experiments]
    return {"environment": asdict(report.environment), "rows": rows}


def _every_collective(length: int) -> tuple[Experiment, ...]:
    return tuple(
        Experiment("ring_all_reduce", options={"collective": collective, "implementation": implementation, "elements": length})
        for collective in COLLECTIVES for implementation in IMPLEMENTATIONS
    )


def _bytes_row(world_size: int, report: ExperimentReport) -> dict[str, Any]:
    if report.payload_bytes_by_rank is None or not report.settled or report.agreeing < report.repetitions:
        raise SystemExit(f"P = {world_size}, {dict(report.experiment.options)}: the readings disagree; record again")
    return {"P": world_size, **report.experiment.options, "payload_bytes_by_rank": report.payload_bytes_by_rank}


def times_of_all_reduce() -> dict[str, Any]:
    """For each size the library's all-reduce, in several launches of the run that a reader starts, summed up as theirs is."""
    seconds: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    with LocalLauncher() as launcher:
        for _ in range(TIMES_LAUNCHES):
            for world_size in TIMES_WORLD_SIZES:
                report = launcher.run(replace(timing_run(world_size), time_limit_seconds=SECONDS))
                for one in report.experiments:
                    seconds[world_size, buffer_bytes(one.experiment, one.dtype)] += call_seconds(one)
    rows = [_times_row(world_size, timed(n, calls)) for (world_size, n), calls in sorted(seconds.items())]
    return {"environment": asdict(report.environment), "launches": TIMES_LAUNCHES, "rows": rows}


def _times_row(world_size: int, one: Timed) -> dict[str, Any]:
    return {"P": world_size, **asdict(one)}


def logs_of_overlap() -> list[dict[str, Any]]:
    """For each way of sending a gradient, of many launches the one whose all-reduces took the median time."""
    with LocalLauncher() as launcher:
        spec = RunSpec(2, OVERLAP, time_limit_seconds=SECONDS)
        launches = [compare(launcher.run(spec)) for _ in range(OVERLAP_LAUNCHES)]
    ways = zip(*launches, strict=True)
    return [result_json(sorted(results, key=_seconds_in_flight)[OVERLAP_LAUNCHES // 2]) for results in ways]


def _seconds_in_flight(result: Result) -> float:
    assert result.report is not None, "a launch that measured nothing raises"
    return sum(interval.end_seconds - interval.start_seconds
               for interval in result.report.timeline if interval.name.startswith("all_reduce"))


def in_todays_words(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """A recorded result as it would read if the same had been measured today."""
    measured, setting = recorded["measured"], dict(recorded["spec"])
    world_size = setting.pop("P")
    judged = {name: measured[name] for name in ("dtype", "settled", "repetitions", "agreeing", "note")}
    weights = {f"weights_{name}": value for name, value in measured["weights"].items()}
    told_elsewhere = {"calls_payload_bytes_by_rank": None, "calls_by_rank": None, "memory_by_rank": (), "timeline": (),
                      "step_seconds": 0.0, "wire_matrix": None}  # of the wire only sums were kept
    experiment = {"experiment": setting, "payload_matrix": measured["matrix"], **judged, **weights, **told_elsewhere}
    run = {"P": world_size, "experiments": [experiment], "environment": recorded["environment"], "timings": {}}
    return {**result_json(compare(report_from_json(run))[0]), "measured": measured}


RECORDERS: dict[str, Callable[[], object]] = {
    "bytes": bytes_of_collectives, "times": times_of_all_reduce, "overlap": logs_of_overlap,
}


if __name__ == "__main__":
    what, *files = sys.argv[1:]
    for file in map(Path, files):
        data = [in_todays_words(one) for one in json.loads(file.read_bytes())] if what == "words" else RECORDERS[what]()
        file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
