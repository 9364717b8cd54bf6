"""When two runs are the same, and what of a lesson's experiments can run together. Pure, but for reading our own files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from platform import machine, system

from app.runs.host_process import CODE_ROOT
from kernels.spec import (
    Experiment,
    Fault,
    OptionValue,
    RunSpec,
    experiment_faults,
    installation_faults,
    run_faults,
    to_json,
)

# One launch carries a handful of experiments; whoever wants a grid runs `worldsize verify`.
MOST_EXPERIMENTS = 12


def spec_key(spec: RunSpec) -> str:
    """The same for two specs that measure the same: SHA-256 of all that decides the result, so not of the time limit.

    An option written out at its default is the same as one left out.
    """
    decisive = to_json(replace(spec, time_limit_seconds=0.0, experiments=tuple(map(_canonical, spec.experiments))))
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()


def _canonical(experiment: Experiment) -> Experiment:
    given: dict[str, OptionValue] = {
        name: value for name, value in experiment.options.items() if value != replace(experiment, options={}).option(name)
    }
    return replace(experiment, options=given)


@cache
def versions() -> str:
    """Of all that measures on this machine: torch, the kernels, the system and its GPUs. A result of others is not ours.

    torch is asked through its package's metadata: importing it would cost seconds and memory.
    """
    parts = (_torch_version(), kernels_version(), system(), machine(), str(_gpu_count()))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def kernels_version() -> str:
    """SHA-256 of the text of every kernel: a changed meter or strategy makes earlier results another version's."""
    digest = hashlib.sha256()
    for file in sorted((CODE_ROOT / "kernels").rglob("*.py")):
        digest.update(file.relative_to(CODE_ROOT).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _torch_version() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return "no torch"


def _gpu_count(devices: Path = Path("/dev")) -> int:
    return sum(1 for path in devices.glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name))


def request_faults(spec: RunSpec, max_world_size: int) -> list[Fault]:
    """Why this run may not be asked for here; empty when it may."""
    faults = run_faults(spec, max_world_size)
    if len(spec.experiments) > MOST_EXPERIMENTS:
        faults.append(Fault("experiments", len(spec.experiments), f"at most {MOST_EXPERIMENTS} in one run"))
    return faults


LeftOut = list[tuple[Experiment, list[Fault]]]


def runnable(world_size: int, experiments: Sequence[Experiment]) -> tuple[RunSpec | None, LeftOut]:
    """One launch of those that can run on this many ranks (None if none can), and each other one with its reasons."""
    fitting: list[Experiment] = []
    left_out: LeftOut = []
    for experiment in experiments:
        faults = experiment_faults(world_size, experiment) or installation_faults(experiment)
        if faults:
            left_out.append((experiment, faults))
        else:
            fitting.append(experiment)
    return (RunSpec(world_size, tuple(fitting)) if fitting else None), left_out
