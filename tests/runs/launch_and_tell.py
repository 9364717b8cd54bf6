"""A process with a launcher of its own, for tests that kill or interrupt it: prints its host's pid and its run's events."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from app.runs.launch import Event, LocalLauncher
from kernels.spec import Experiment, RunSpec


def tell(name: str, **facts: object) -> None:
    """A JSON line, at once."""
    print(json.dumps({"event": name, **facts}), flush=True)


def main(scratch_parent: Path) -> None:
    """Two ranks of which one hangs."""
    spec = RunSpec(P=2, experiments=(Experiment("faulty", options={"fault": "hangs"}),), time_limit_seconds=120)
    with LocalLauncher(extra_strategies="tests.runs.faulty_strategies", scratch_parent=scratch_parent) as launcher:
        tell("host", pid=launcher.host_pid)

        def on_event(event: Event) -> None:
            tell("run", facts=dict(event.facts))

        launcher.run(spec, on_event)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
