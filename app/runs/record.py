"""The measurements that ship with the figures of the ring lesson: `python -m app.runs.record bytes|times FILE`.

Bytes are the same on every machine of a backend; times are those of the machine at hand, so record them when it is quiet.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.runs.launch import LocalLauncher
from kernels.spec import BYTES_PER_ELEMENT, COLLECTIVES, IMPLEMENTATIONS, Experiment, ExperimentReport, RunReport, RunSpec

BYTES_WORLD_SIZES = range(2, 9)
BYTES_LENGTHS = (32, 1680)  # the gradient of the first lesson; a length that 2 P divides for every P up to 8
TIMES_WORLD_SIZES = (2, 3, 4)
TIMES_LENGTHS = tuple(2**power for power in range(10, 21))  # 4 KiB to 4 MiB in fp32
TIMES_LAUNCHES = 6
CALLS = 25
SECONDS = 300.0


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
    """For each size the library's all-reduce, many times over several launches: the fastest call and the median one."""
    seconds: defaultdict[tuple[int, int], list[float]] = defaultdict(list)
    experiments = tuple(
        Experiment("ring_all_reduce", options={"implementation": "library", "elements": length, "calls": CALLS})
        for length in TIMES_LENGTHS
    )
    with LocalLauncher() as launcher:
        for _ in range(TIMES_LAUNCHES):
            for world_size in TIMES_WORLD_SIZES:
                report = launcher.run(RunSpec(world_size, experiments, purpose="timing", time_limit_seconds=SECONDS))
                for length, call_seconds in _calls(report):
                    seconds[world_size, length] += call_seconds
    rows = [{"P": world_size, "n": length * BYTES_PER_ELEMENT["fp32"], "fastest_seconds": min(calls),
             "median_seconds": statistics.median(calls), "calls": len(calls)}
            for (world_size, length), calls in sorted(seconds.items())]
    return {"environment": asdict(report.environment), "launches": TIMES_LAUNCHES, "rows": rows}


def _calls(report: RunReport) -> Iterator[tuple[int, Sequence[float]]]:
    """Each size with the seconds of every call, as long as its slowest rank took."""
    for one in report.experiments:
        by_rank = [[interval.end_seconds - interval.start_seconds for interval in one.timeline if interval.rank == rank]
                   for rank in range(report.P)]
        yield int(one.experiment.options["elements"]), [max(call) for call in zip(*by_rank, strict=True)]


RECORDERS = {"bytes": bytes_of_collectives, "times": times_of_all_reduce}

if __name__ == "__main__":
    what, file = sys.argv[1:]
    Path(file).write_text(json.dumps(RECORDERS[what](), indent=1) + "\n", encoding="utf-8")
