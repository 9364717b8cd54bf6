"""What `make` would do, as it prints it."""

from __future__ import annotations

import os
import subprocess

from tests.image.build import ROOT

OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "TORCH", "VENV")  # of the make that runs the tests


def start(*variables: str) -> str:
    """The last command of `make run`, which starts the server."""
    surroundings = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
    command = ["make", "--dry-run", "run", *variables]
    planned = subprocess.run(command, cwd=ROOT, env=surroundings, check=True, capture_output=True, text=True)
    return planned.stdout.splitlines()[-1]


def test_whether_runs_are_on_is_for_the_environment_to_say() -> None:
    assert start() == ".venv/bin/worldsize serve"


def test_without_torch_runs_are_off() -> None:
    assert start("TORCH=none") == "WORLDSIZE_RUNS=off .venv/bin/worldsize serve"
