"""The launch host: one long-lived process with torch imported, which forks an elastic agent for each run it is asked for.

    python -m kernels.host [--scratch FOLDER] [--extra-strategies MODULE]

Standard input, a JSON line each:   {"run": id, "spec": {...}}   {"cancel": id}
Standard output, a JSON line each:  {"event": "ready", ...} once, then {"run": id, "event": ..., ...}: started, rank, phase
and, last, one of report, failed, timed_out, cancelled. By then no process and no file of that run is left.

One run at a time; what arrives meanwhile waits. The host has one thread and never touches CUDA: neither survives a fork.
It ends when its input ends or its parent is gone, with all that it started, and deletes its scratch folder; of a folder that
held something before, only what it has put there.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from kernels import processes
from kernels.spec import STRATEGY_SPECS, RunSpec, spec_from_json

if TYPE_CHECKING:
    from kernels.agent import Entry
    from kernels.watch import WatchedRun

MakeRun = Callable[[str, RunSpec, Path], "WatchedRun"]
STANDARD_INPUT = 0


class Host:
    """The loop: requests in, events out, at most one run in flight."""

    def __init__(self, output: int, scratch: Path, make_run: MakeRun) -> None:
        self._output = output
        self._scratch = scratch
        self._make_run = make_run
        self._parent_pid = os.getppid()
        self._waiting: deque[tuple[str, RunSpec]] = deque()
        self._run: WatchedRun | None = None
        self._runs_started = 0
        self._unread = b""
        self._ending = False
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = os.pipe()

    def serve(self) -> None:
        """Until the input ends, the parent is gone or a signal says so; whatever is in flight then is ended."""
        self._watch_signals()
        self._selector.register(STANDARD_INPUT, selectors.EVENT_READ, self._read_requests)
        self._selector.register(self._woken, selectors.EVENT_READ, self._drain_waker)
        self._say({"event": "ready", "pid": os.getpid(), "started": processes.start_ticks(os.getpid())})
        while not self._ending:
            timeout = None if self._run is None else self._run.seconds_to_wait()
            for key, _ in self._selector.select(timeout):
                key.data()
            self._advance()
        if self._run is not None:
            self._run.abandon()

    def _watch_signals(self) -> None:
        os.set_blocking(self._waker, False)
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGUSR1, self._on_parents_death)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_end)
        processes.signal_when_parent_dies(signal.SIGUSR1)

    def _on_end(self, _number: int, _frame: FrameType | None) -> None:
        self._ending = True

    def _on_parents_death(self, _number: int, _frame: FrameType | None) -> None:
        # The kernel says the same when only the thread that started the host has ended.
        self._ending = self._ending or os.getppid() != self._parent_pid

    def _drain_waker(self) -> None:
        os.read(self._woken, 4096)

    def _read_requests(self) -> None:
        chunk = os.read(STANDARD_INPUT, 65536)
        if not chunk:
            self._ending = True
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def _take(self, request: dict[str, Any]) -> None:
        if "cancel" in request:
            self._cancel(request["cancel"])
        else:
            self._enqueue(request["run"], request["spec"])

    def _enqueue(self, run_id: str, spec: dict[str, Any]) -> None:
        try:
            self._waiting.append((run_id, spec_from_json(spec)))
        except (TypeError, KeyError) as error:
            self._say_not_started(run_id, f"not a run spec: {error}")

    def _say_not_started(self, run_id: str, error: str) -> None:
        facts = {"rank": None, "exit": "refused", "error": error, "phase": "starting", "log_tail": ""}
        self._say({"run": run_id, "event": "failed", **facts})

    def _cancel(self, run_id: str) -> None:
        if self._run is not None and self._run.run_id == run_id:
            self._run.cancel()
            return
        for item in [item for item in self._waiting if item[0] == run_id]:
            self._waiting.remove(item)
            self._say({"run": run_id, "event": "cancelled"})

    def _advance(self) -> None:
        run = self._run
        if run is not None:
            run.advance()
            if run.outcome is not None:
                self._stop_reading(run)
                os.close(run.pipe)
                self._say({"run": run.run_id, **run.outcome})
                self._run = None
        while self._run is None and self._waiting and not self._ending:
            self._start(*self._waiting.popleft())

    def _start(self, run_id: str, spec: RunSpec) -> None:
        self._runs_started += 1
        run = self._make_run(run_id, spec, self._scratch / f"run-{self._runs_started}-{os.getpid()}")
        try:
            started = run.start(self._let_go)
        except OSError as error:  # no room for its folder, or no memory for its agent: others may still run
            shutil.rmtree(run.folder, ignore_errors=True)
            self._say_not_started(run_id, f"nothing could be started: {error}")
            return
        self._say({"run": run_id, **started})
        self._selector.register(run.pipe, selectors.EVENT_READ, self._read_run)
        self._run = run

    def _read_run(self) -> None:
        run = self._run
        if run is None:
            return
        for event in run.read():
            self._say({"run": run.run_id, **event})
        if run.told_all:
            self._stop_reading(run)

    def _stop_reading(self, run: WatchedRun) -> None:
        if run.pipe in self._selector.get_map():
            self._selector.unregister(run.pipe)

    def _let_go(self) -> None:
        """In a freshly forked agent: close what is the host's alone."""
        self._selector.close()
        for descriptor in (self._output, self._woken, self._waker):
            os.close(descriptor)

    def _say(self, event: dict[str, Any]) -> None:
        line = json.dumps(event).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._output, line):]
        except BrokenPipeError:
            self._ending = True


def load_entry(extra_strategies: str | None) -> Entry:
    """Import torch and all that a rank will need, so that every launch has it; returns what a rank runs.

    `extra_strategies` names a module with STRATEGIES (name -> build) and SPECS (StrategySpec), which join those of this
    process: a way for tests to bring their own.
    """
    module = None if extra_strategies is None else importlib.import_module(extra_strategies)
    from kernels import strategies, train

    if module is not None:
        strategies.STRATEGIES.update(module.STRATEGIES)
        STRATEGY_SPECS.update({spec.name: spec for spec in module.SPECS})
    return train.run_experiments


def import_late(spec: RunSpec) -> None:
    """Import what the strategies of a run need beyond torch, before the first fork that needs it: later ranks have it at once.

    Megatron-Core costs 1 s of CPU and 57 MB, so no host has it from the start. While each rank imported it anew, a run of four
    ranks and four strategies warmed up for 4.2 s on two quiet cores, every time; now for 0.8 s, and the first such run waits
    2 s for the import. It starts no thread and leaves CUDA alone. What is missing or broken is told by the rank that needs it.
    """
    from kernels import strategies

    known = len(sys.modules)
    for strategy in {one.strategy for one in spec.experiments} & strategies.LATE_IMPORTS.keys():
        # A broken installation may raise anything, and the host must not go with it: Apex and Transformer Engine, built for
        # another torch, are known to raise RuntimeError, AttributeError and OSError.
        with suppress(Exception):
            strategies.LATE_IMPORTS[strategy]()
    if len(sys.modules) > known:
        gc.collect()
        gc.freeze()


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until its input ends."""
    parser = argparse.ArgumentParser(prog="kernels.host", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--scratch", type=Path, help="folder for everything temporary; new or empty, it is deleted at the end")
    parser.add_argument("--extra-strategies", metavar="MODULE", help="module with STRATEGIES and SPECS to add")
    given = parser.parse_args(arguments)
    # Whatever is printed from here on, by torch or by a rank, must not mix with the events.
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    scratch: Path = given.scratch or Path(tempfile.mkdtemp(prefix="worldsize-host-"))
    scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = found_in(scratch)
    os.environ.update(TMPDIR=str(scratch), OMP_NUM_THREADS="1")
    tempfile.tempdir = str(scratch)
    processes.adopt_orphans()
    entry = load_entry(given.extra_strategies)
    from kernels.watch import WatchedRun

    def make_run(run_id: str, spec: RunSpec, folder: Path) -> WatchedRun:
        import_late(spec)
        return WatchedRun(run_id, spec, folder, entry)

    gc.collect()
    gc.freeze()
    try:
        Host(output, scratch, make_run).serve()
    finally:
        clear(scratch, found)
    return 0


def found_in(scratch: Path) -> frozenset[str]:
    """What lies there by now and is not ours to delete: all but the log, if standard error goes to one there."""
    log = os.fstat(sys.stderr.fileno())
    return frozenset(entry.name for entry in scratch.iterdir() if not os.path.samestat(entry.lstat(), log))


def clear(scratch: Path, found: frozenset[str]) -> None:
    """Delete what this host has put there, and the folder if that leaves it empty; somebody else may be doing so, too."""
    with suppress(OSError):
        for entry in [entry for entry in scratch.iterdir() if entry.name not in found]:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        scratch.rmdir()


if __name__ == "__main__":
    sys.exit(main())
