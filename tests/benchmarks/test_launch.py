"""How long a measurement takes on a warm host, beside the same one started cold with torchrun, in one run."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

import pytest

from app.runs.launch import LocalLauncher
from kernels.spec import Experiment, RunSpec, to_json

pytestmark = [pytest.mark.benchmark, pytest.mark.torchrun, pytest.mark.timeout(600)]

ONE = RunSpec(4, (Experiment("data_parallel"),))
THREE = RunSpec(4, tuple(Experiment(name) for name in ("data_parallel", "tensor_parallel", "pipeline_gpipe")))
WARM_RUNS, COLD_RUNS = 20, 5


def warm_seconds(launcher: LocalLauncher, spec: RunSpec) -> float:
    began = time.monotonic()
    launcher.run(spec)
    return time.monotonic() - began


def cold_seconds(spec: RunSpec) -> float:
    """The same run from a shell: torch is imported by the agent and by each rank."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(spec.P), "--standalone",
               "--local-addr", "127.0.0.1", "-m", "kernels.train", "--spec", json.dumps(to_json(spec))]
    environment = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    began = time.monotonic()
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    seconds = time.monotonic() - began
    assert json.loads(done.stdout)["P"] == spec.P
    return seconds


def test_a_warm_host_against_cold_torchrun() -> None:
    with LocalLauncher() as launcher:
        launcher.run(ONE)  # starts the host
        one = [warm_seconds(launcher, ONE) for _ in range(WARM_RUNS)]
        three = [warm_seconds(launcher, THREE) for _ in range(WARM_RUNS)]
        cold = [cold_seconds(ONE) for _ in range(COLD_RUNS)]
    measured = {"one strategy, warm host": one, "three strategies, warm host": three, "one strategy, cold torchrun": cold}
    for name, seconds in measured.items():
        print(f"{name}: p50 {statistics.median(seconds):.2f} s, slowest {max(seconds):.2f} s, {len(seconds)} runs")
    print(f"cold torchrun / warm host: {statistics.median(cold) / statistics.median(one):.1f}")
