"""How long an all-reduce takes on this machine: a run over many sizes, and alpha and beta fitted to it.
In a shell: `python -m app.runs.timing P`.

Each size is called CALLS times in a row, and a call lasts as long as on its slowest rank. Buffers are copied before the first
call, so copying is no part of the time. Of all calls of a size the first decile counts: `latency.timed` says why. One step
before the measured one warms up: it pays for connections and first touches of memory, in as many calls again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from app.runs import replay
from app.runs.launch import LocalLauncher
from app.theory.latency import Fit, Timed, fit_alpha_beta, timed
from app.theory.units import BYTES_PER_ELEMENT
from kernels.spec import Experiment, ExperimentReport, Fault, RunReport, RunSpec, run_faults, to_json

SIZES = tuple(2**power for power in range(10, 21))  # elements of 4 bytes: 4 KiB to 4 MiB
CALLS = 25  # on 4 ranks and 2 busy cores a call takes 2 to 10 ms: so the whole run ends in 5 to 12 s
LEAST_WORLD_SIZE = 2
PURPOSE = "timing"


def timing_run(world_size: int, implementation: str = "library", sizes: tuple[int, ...] = SIZES) -> RunSpec:
    """One launch that times an all-reduce of each size."""
    experiments = tuple(
        Experiment("ring_all_reduce", options={"collective": "all_reduce", "implementation": implementation, "elements": size,
                                               "calls": CALLS})
        for size in sizes
    )
    return RunSpec(world_size, experiments, repetitions=1, warmup_steps=1, purpose=PURPOSE)


def buffer_bytes(experiment: Experiment, dtype: str = "fp32") -> int:
    """Bytes of the buffer that an experiment of a timing run calls with."""
    return int(experiment.option("elements")) * BYTES_PER_ELEMENT[dtype]


def call_seconds(report: ExperimentReport) -> list[float]:
    """The seconds of every call of the last step, as long as its slowest rank took."""
    by_rank: dict[int, list[float]] = {}
    for interval in report.timeline:
        by_rank.setdefault(interval.rank, []).append(interval.end_seconds - interval.start_seconds)
    return [max(call) for call in zip(*by_rank.values(), strict=True)]


def timed_sizes(report: RunReport) -> tuple[Timed, ...]:
    """What was measured at each size, smallest first."""
    return tuple(sorted(_timed_sizes(report), key=lambda one: one.n))


def _timed_sizes(report: RunReport) -> Iterator[Timed]:
    for one in report.experiments:
        yield timed(buffer_bytes(one.experiment, one.dtype), call_seconds(one))


def fit(report: RunReport) -> Fit:
    """alpha and beta of this machine. Raises ValueError where the times follow no such line."""
    return fit_alpha_beta(report.P, [one.point for one in timed_sizes(report)])


def has_fit(report: RunReport) -> bool:
    """Whether the times follow a line with a positive alpha and bandwidth: on a busy machine they may not."""
    try:
        fit(report)
    except ValueError:
        return False
    return True


def fit_json(report: RunReport) -> dict[str, Any]:
    """What /api carries: times by size, and the line through them; its two constants are null where there is none."""
    line = fit(report) if has_fit(report) else None
    return {
        "alpha_seconds": None if line is None else line.alpha_seconds,
        "bandwidth_bytes_per_second": None if line is None else line.bandwidth_bytes_per_second,
        "points": [
            {"buffer_bytes": one.n, "calls": one.calls, "first_decile_seconds": one.first_decile_seconds,
             "fastest_seconds": one.fastest_seconds, "median_seconds": one.median_seconds,
             "predicted_seconds": None if line is None else line.seconds(one.n)}
            for one in timed_sizes(report)
        ],
    }


def main(words: Sequence[str]) -> None:
    """Times on so many ranks in a shell, as a script to take away prints them."""
    if len(words) != 1 or not words[0].isdecimal():
        raise SystemExit("usage: python -m app.runs.timing P        P ranks, such as 2")
    run = timing_run(int(words[0]))
    if faults := run_faults(run) + ([] if run.P >= LEAST_WORLD_SIZE else [Fault("P", run.P, "one rank sends no message")]):
        raise SystemExit("; ".join(map(str, faults)))
    with LocalLauncher() as launcher:
        replay.show_times(to_json(launcher.run(run)), [])


if __name__ == "__main__":
    main(sys.argv[1:])
