"""One elastic launch, seen from inside: the agent that the host forks, and the ranks that the agent forks.

Both tell the host what happens through one pipe that they inherit, a JSON line at a time. A line is never longer than
PIPE_BUF, so that lines of several writers do not mix; the report, which may be longer, goes through a file.
"""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import os
import select
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NoReturn

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from kernels import backend, processes, rendezvous
from kernels.spec import RunReport, RunSpec, to_json

Entry = Callable[[RunSpec, Callable[[dict[str, Any]], None]], RunReport | None]

JOIN_SECONDS = 30
SHUTDOWN_SECONDS = 1
MONITOR_SECONDS = 0.02
RANK_NICENESS = 10
ERROR_LETTERS = 400
ERROR_BYTES = select.PIPE_BUF - 100  # as JSON, where a letter may take 12 bytes; what else is in the line takes some 50
LOG_LINES = 30
DUMP_SIGNAL = signal.SIGUSR1  # a rank that gets it writes the stack of every thread to its log, whatever it is doing
SIGNALS = (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)


@dataclass(frozen=True)
class Launch:
    """What agent and ranks of one run share: the spec, a folder of their own, the pipe to the host, what a rank runs."""

    spec: RunSpec
    folder: Path
    pipe: int
    entry: Entry

    @property
    def report_path(self) -> Path:
        return self.folder / "report.json"

    @property
    def agent_log(self) -> Path:
        return self.folder / "agent.log"

    def rank_log(self, rank: int) -> Path:
        return self.folder / f"rank-{rank}.log"

    def tell(self, event: str, **facts: Any) -> None:
        """One line to the host."""
        line = json.dumps({"event": event, **facts}).encode() + b"\n"
        if len(line) > select.PIPE_BUF:
            raise ValueError(f"event {event}: {len(line)} bytes; the pipe takes at most {select.PIPE_BUF} in one piece")
        os.write(self.pipe, line)


class _Telling:
    """Tells the host about an exception that passes, and writes it to the log if there is room; it passes all the same."""

    def __init__(self, launch: Launch, rank: int | None) -> None:
        self._launch = launch
        self._rank = rank

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None or isinstance(error, (ChildFailedError, SignalException)):
            return
        words = "".join(traceback.format_exception_only(kind, error)).strip()
        self._launch.tell("raised", rank=self._rank, error=shortened(words[:ERROR_LETTERS], ERROR_BYTES))
        with suppress(OSError):  # a full disk is what it may be about
            traceback.print_exception(kind, error, trace)
            sys.stderr.flush()


def shortened(words: str, most_bytes: int) -> str:
    """As much of the beginning as fits into `most_bytes` of JSON."""
    while len(json.dumps(words)) > most_bytes:
        words = words[:len(words) * 9 // 10]
    return words


def run_agent(launch: Launch, host_pid: int) -> NoReturn:
    """The life of a freshly forked agent. It ends here, whatever happens: the host's own code must not go on in it."""
    code = 1
    try:
        with _Telling(launch, rank=None):
            _settle(launch.agent_log, host_pid)
            os.setsid()
            _launch_ranks(launch)
        code = 0
    except ChildFailedError as failed:
        for failure in failed.failures.values():
            launch.tell("named", pid=failure.pid, code=failure.exitcode)
    finally:
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(code)


def _settle(log: Path, parent_pid: int) -> None:
    """Own signals, own log instead of the parent's streams, and no life without the parent."""
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    processes.die_with_parent(parent_pid)
    nothing = os.open(os.devnull, os.O_RDONLY)
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((nothing, 0), (written, 1), (written, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(written)


def _launch_ranks(launch: Launch) -> None:
    spec, folder = launch.spec, launch.folder
    os.chdir(folder)
    tempfile.tempdir = str(folder)
    chosen = backend.choose_backend(spec.P, backend.count_gpus(), wanted=spec.backend)
    os.environ.update(
        TMPDIR=str(folder),
        WORLDSIZE_LAUNCH_HOST="1",
        # LaunchConfig asks whether there is CUDA; asked this way, it is NVML that answers and CUDA stays untouched.
        PYTORCH_NVML_BASED_CUDA_CHECK="1",
        **backend.backend_environment(chosen, spec.purpose),
    )
    # elastic puts the host's name into every event it records; where no name server answers, that takes 5 s each.
    socket.getfqdn = lambda name="": rendezvous.ADDRESS
    rendezvous.register()
    _tell_exits(launch)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=spec.P,
        run_id=folder.name,
        role="rank",
        rdzv_backend=rendezvous.NAME,
        rdzv_configs={"timeout": JOIN_SECONDS},
        local_addr=rendezvous.ADDRESS,
        max_restarts=0,
        monitor_interval=MONITOR_SECONDS,
        start_method="fork",
        logs_specs=DefaultLogsSpecs(log_dir=str(folder)),
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    elastic_launch(config, run_rank)(launch, os.getpid(), multiprocessing.get_context("fork").Barrier(spec.P))


def _tell_exits(launch: Launch) -> None:
    """Tell the host how each rank went, in order.

    torch elastic names one failed rank: with several, not always the first. But it may reap a rank before the signal of
    its death is handled here, and then only elastic can say how that one went.
    """
    known: set[int] = set()

    def on_child(_number: int, _frame: FrameType | None) -> None:
        # WNOWAIT leaves the dead to elastic, which reaps them; so each is seen again until then.
        for pid in processes.children(os.getpid()):
            if pid in known:
                continue
            try:
                result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                continue
            if result is not None:
                known.add(pid)
                code = result.si_status if result.si_code == os.CLD_EXITED else -result.si_status
                launch.tell("exit", pid=pid, code=code)

    signal.signal(signal.SIGCHLD, on_child)
    signal.siginterrupt(signal.SIGCHLD, False)


def run_rank(launch: Launch, agent_pid: int, all_forked: Barrier) -> None:
    """The life of a rank: run the entry, hand over the report, say that it is finished.

    No rank talks to the store before the last one is forked. The store's server is a thread of the agent; one that is busy
    during a fork may hold a lock that the child then waits for in vain. Seen twice in some 900 launches under load: the
    last rank hung in the constructor of its store, the others waited for it until they timed out.
    """
    rank = int(os.environ["RANK"])

    def tell_phase(event: dict[str, Any]) -> None:
        launch.tell(**{"event": "phase", "rank": rank, **event})

    with _Telling(launch, rank):
        _settle(launch.rank_log(rank), agent_pid)
        os.nice(RANK_NICENESS)
        faulthandler.register(DUMP_SIGNAL, file=sys.stderr, all_threads=True)
        launch.tell("rank", rank=rank, pid=os.getpid(), started=processes.start_ticks(os.getpid()))
        all_forked.wait(JOIN_SECONDS)
        report = launch.entry(launch.spec, tell_phase)
        if report is not None:
            launch.report_path.write_text(json.dumps(to_json(report)))
        launch.tell("finished", rank=rank)


def last_lines(log: Path, count: int = LOG_LINES) -> str:
    """The end of a log; empty where it was never written."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-count:]) if log.exists() else ""
