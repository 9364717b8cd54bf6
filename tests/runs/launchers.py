"""A warm launch host for the tests of a whole session, and short ways to run something on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.runs.launch import LocalLauncher
from app.runs.results import Result, compare
from kernels.spec import Experiment, RunSpec


@pytest.fixture(scope="session")
def launcher() -> Iterator[LocalLauncher]:
    """One host for the session: a launch costs a second or two, starting torch costs several."""
    with LocalLauncher() as launcher:
        yield launcher


def measure(launcher: LocalLauncher, world_size: int, *experiments: Experiment, seconds: float = 600.0) -> list[Result]:
    """Run these experiments in one launch and set them beside their predictions."""
    return compare(launcher.run(RunSpec(world_size, experiments, time_limit_seconds=seconds)))


def measure_one(launcher: LocalLauncher, world_size: int, experiment: Experiment) -> Result:
    """The same for a single experiment."""
    return measure(launcher, world_size, experiment)[0]
