"""Runs a spec under torchrun and prints what it measured. Whole in itself: scripts and notebooks to take away are made of it.

To run it, torch and the kernels of World Size must be there: either work in the folder of a checkout,
or install them once with   pip install '.[lab]'   in that folder.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from typing import Any

Json = dict[str, Any]


def torchrun(spec: Json, log_folder: str) -> list[str]:
    """The command as a list of words: a process for each rank, a free port on this machine, the spec as JSON.

    torchrun makes a folder for its logs and never deletes it; so it gets one that will be.
    """
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--nproc-per-node", str(spec["P"])),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"),
        *("--log-dir", log_folder),
        *("-m", "kernels.train", "--spec", json.dumps(spec)),
    ]


def measure(spec: Json) -> Json:
    """Run it and return the report. Stops with the job's own words if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        job = subprocess.run(torchrun(spec, folder), capture_output=True, text=True)
    if job.returncode != 0:
        raise SystemExit(f"{job.stderr[-4000:]}\nThis command ended with exit code {job.returncode}:\n{shlex.join(job.args)}")
    report: Json = json.loads(job.stdout.strip().splitlines()[-1])
    return report


def show(report: Json, seen: list[Json]) -> None:
    """A few lines for each experiment: bytes by rank, payload and wire, and whether the page showed the same payload."""
    for index, one in enumerate(report["experiments"]):
        experiment = one["experiment"]
        numbers = ", ".join(f"{name} = {experiment[name]}" for name in ("L", "H", "T", "m"))
        print(f"{experiment['strategy']}: P = {report['P']}, {numbers}")
        print("  payload bytes by rank:", words(one["payload_matrix"]))
        print("  wire bytes by rank:   ", words(one["wire_matrix"]))
        if seen:
            same = one["payload_matrix"] == seen[index]["measured"]["matrix"]
            print("  the same payload, from each rank to each, as on the page" if same else "  not the payload of the page")


def words(matrix: list[list[int]] | None) -> str:
    """What each rank sent, and the sum over all."""
    if matrix is None:
        return "not counted here"
    sent = [sum(row) for row in matrix]
    return f"{' '.join(map(str, sent))}; {sum(sent)} in all"
