"""How long an all-reduce takes on this machine: a run over many sizes, and alpha and beta fitted to it.

What is timed is a *step*: `calls` all-reduces of one buffer, one after the other, on the slowest rank; its median over the
repetitions, divided by the calls, is the time of one. Small buffers get more calls, so that a step lasts long enough to be
timed and ranks that start late matter little. Copying the buffers is outside of the time of a call, but inside that of a
step: it is one pass over memory, where an all-reduce is several.
"""

from __future__ import annotations

from app.theory.latency import Fit, Point, fit_alpha_beta
from app.theory.units import BYTES_PER_ELEMENT
from kernels.spec import Experiment, ExperimentReport, RunReport, RunSpec

SIZES = (256, 1024, 4096, 16_384, 65_536, 131_072, 262_144, 524_288, 1_048_576)  # elements of 4 bytes: 1 KiB to 4 MiB
REPETITIONS = 15
MOST_CALLS = 10
ELEMENTS_PER_STEP = 262_144  # a step of smaller buffers repeats the call until it has moved so many, or made MOST_CALLS


def timing_run(world_size: int, implementation: str = "library", sizes: tuple[int, ...] = SIZES) -> RunSpec:
    """One launch that times an all-reduce of each size."""
    experiments = tuple(
        Experiment("ring_all_reduce", options={"collective": "all_reduce", "implementation": implementation, "elements": size,
                                               "calls": calls_in_a_step(size)})
        for size in sizes
    )
    return RunSpec(world_size, experiments, repetitions=REPETITIONS, purpose="timing")


def calls_in_a_step(elements: int) -> int:
    """From MOST_CALLS for the shortest buffers down to 1. Few: a long step is more easily interrupted than a short one."""
    return max(1, min(MOST_CALLS, ELEMENTS_PER_STEP // elements))


def measured_point(report: ExperimentReport) -> Point:
    """Bytes of the buffer and seconds of one call."""
    experiment = report.experiment
    elements, calls = int(experiment.option("elements")), int(experiment.option("calls"))
    return Point(elements * BYTES_PER_ELEMENT[report.dtype], report.step_seconds / calls)


def fit(report: RunReport) -> Fit:
    """alpha and beta of this machine. Raises ValueError where the times follow no such line."""
    return fit_alpha_beta(report.P, [measured_point(one) for one in report.experiments])
