"""A worker as a process of its own: python -m tests.runs.worker_process JSON, with the keyword arguments of `main`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.runs import worker
from app.runs.launch import LocalLauncher
from app.runs.worker import run_worker
from app.settings import Settings
from kernels.spec import STRATEGY_SPECS, Choice, Range, StrategySpec
from tests.runs.made_up import MadeUpLauncher

FAULTY_STRATEGIES = "tests.runs.faulty_strategies"
LONG = 3600.0  # no machine is so slow that its workers are taken for silent or mute, unless a test wants it
# The same declaration as there, without torch: this process must know the name, only the ranks need the code.
FAULTY = StrategySpec("faulty", "Faulty", "none", "Goes wrong.", options=(
    Choice("fault", "what goes wrong", ("raises", "hangs", "leaves")), Range("rank", "where", 1, 0, 7)))


def main(data_dir: str, url: str, *, seconds: float = 0.0, journal: str = "", real: bool = False, concurrency: int = 1,
         strategies: str = FAULTY_STRATEGIES, silent_seconds: float = LONG,
         mute_seconds: float = LONG, go: str = "", stops: bool = False) -> None:
    """Until SIGTERM. `real` launches, with the strategies of a module. Else a run takes `seconds` and waits for the file `go`,
    the journal tells of each, and with `stops` the process stops itself in the first one.
    """
    worker.SILENT_SECONDS, worker.MUTE_SECONDS = silent_seconds, mute_seconds
    STRATEGY_SPECS["faulty"] = FAULTY
    settings = Settings(data_dir=Path(data_dir), database_url=url, concurrency=concurrency)

    def make() -> Any:
        if real:
            return LocalLauncher(extra_strategies=strategies, scratch_parent=Path(data_dir))
        return MadeUpLauncher(seconds, over=Path(go).exists if go else lambda: True, stops=stops,
                              journal=Path(journal) if journal else None)

    run_worker(settings, make)


def start(data_dir: Path, url: str, **given: Any) -> subprocess.Popen[bytes]:
    """Start one; whoever starts it ends it."""
    arguments = json.dumps({"data_dir": str(data_dir), "url": url, **given})
    log = (data_dir.parent / "worker.log").open("ab")
    with log:
        return subprocess.Popen([sys.executable, "-m", __spec__.name, arguments], stdout=log, stderr=log)


@contextmanager
def running(data_dir: Path, url: str, **given: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A worker for the length of the block, killed at its end if it still lives."""
    process = start(data_dir, url, **given)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
