"""`worldsize serve`: the web process and the worker, started together, watched, started again when they die, ended together.

Both are forked from this small process, so the settings reach them as they are, flags included. Each leads a group of its own:
Ctrl-C in a terminal comes to this process alone, which ends both in good order. When this process is killed, the kernel
tells both to end (Linux; elsewhere they go on until they are told).
"""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn

import structlog

from app.errors import AppError
from app.settings import Settings
from app.web.logs import configure_logs

log: structlog.stdlib.BoundLogger = structlog.get_logger("app.serve")

PR_SET_PDEATHSIG = 1
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# How a child ends that cannot work here: its words are out, and starting it again would not help. (EX_CONFIG of sysexits.h)
REFUSED = 78
BROKEN = 70  # a fault of our own (EX_SOFTWARE)
START_SECONDS = 10.0  # a refusal comes this soon after the first start; later it is a passing trouble
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 30.0
STEADY_SECONDS = 60.0  # after so long a life the next pause is the first one again
END_SECONDS = 20.0  # the web process may take 10 s to finish what it is answering


@dataclass
class Child:
    """One of the two: what it runs, and how its lives went."""

    name: str
    run: Callable[[], None]
    pid: int = 0
    started: float = 0.0
    lives: int = 0
    pause: float = FIRST_PAUSE_SECONDS
    due: float = field(default_factory=time.monotonic)  # when to start it, while pid is 0


def serve(settings: Settings) -> int:
    """Web and worker until SIGTERM or SIGINT; returns the exit status. Where runs are off there is no worker."""
    configure_logs()
    children = [Child("web", lambda: _web(settings))]
    if settings.runs:
        children.append(Child("worker", lambda: _worker(settings)))
    return supervise(children)


def _web(settings: Settings) -> None:
    from app.serve import run_web  # Each child loads what it needs; this process stays small.

    run_web(settings)


def _worker(settings: Settings) -> None:
    from app.runs.worker import run_worker

    run_worker(settings)


def supervise(children: Sequence[Child]) -> int:
    """Keep all of them running. 0 once told to stop, 1 when one of them cannot work here.

    Call it in the main thread of a process that has no other: it forks.
    """
    with _signals() as wakened:
        try:
            return _watch(children, wakened)
        finally:
            _end(children, wakened)


@dataclass
class Wakened:
    """Becomes readable when a signal came; `stop` says that one of those to stop was among them."""

    reader: socket.socket
    stop: bool = False

    def wait(self, seconds: float) -> None:
        """Until a signal comes or the time is over."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.reader, selectors.EVENT_READ)
            if selector.select(seconds):
                with suppress(BlockingIOError):
                    self.reader.recv(4096)


@contextmanager
def _signals() -> Iterator[Wakened]:
    reader, writer = socket.socketpair()
    with closing(reader), closing(writer):
        reader.setblocking(False)
        writer.setblocking(False)
        wakened = Wakened(reader)

        def note(number: int, frame: FrameType | None) -> None:
            wakened.stop = wakened.stop or number in STOP_SIGNALS

        before = {number: signal.signal(number, note) for number in (*STOP_SIGNALS, signal.SIGCHLD)}
        wakeup = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        try:
            yield wakened
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)


def _watch(children: Sequence[Child], wakened: Wakened) -> int:
    while not wakened.stop:
        now = time.monotonic()
        for child in children:
            if not child.pid and child.due <= now:
                _start(child)
        for child in children:
            status = _reaped(child) if child.pid else None
            if status is not None and not wakened.stop and not _may_live_again(child, status):
                return 1
        due = [child.due for child in children if not child.pid]
        wakened.wait(max(0.0, min(due) - time.monotonic()) if due else LONGEST_PAUSE_SECONDS)
    return 0


def _start(child: Child) -> None:
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    child.pid = os.fork()
    if child.pid == 0:
        _live(child, parent)
    child.started = time.monotonic()
    child.lives += 1
    log.info("started", process=child.name, pid=child.pid, life=child.lives)


def _live(child: Child, parent: int) -> NoReturn:
    """In the child: own signals, own group, its work, and then the end, whatever happens."""
    status = BROKEN
    try:
        signal.set_wakeup_fd(-1)
        for number in (*STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.setpgid(0, 0)
        _end_with(parent)
        child.run()
        status = 0
    except AppError as error:
        status = REFUSED
        print(f"worldsize: {error}", file=sys.stderr)
    except SystemExit as left:  # How uvicorn ends where it cannot listen.
        status = REFUSED if left.code else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _end_with(parent: int) -> None:
    """Have the kernel send SIGTERM when the parent dies; it may be gone before this is asked for."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGTERM)


def _reaped(child: Child) -> int | None:
    """Its wait status if it has ended, else None."""
    pid, status = os.waitpid(child.pid, os.WNOHANG)
    if pid == 0:
        return None
    child.pid = 0
    return status


def _may_live_again(child: Child, status: int) -> bool:
    """Plan its next life, unless there is no point in one."""
    code = os.waitstatus_to_exitcode(status)
    lived = time.monotonic() - child.started
    how = f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
    if child.lives == 1 and code == REFUSED and lived < START_SECONDS:
        log.error("cannot start", process=child.name)
        return False
    if lived > STEADY_SECONDS:
        child.pause = FIRST_PAUSE_SECONDS
    child.due = time.monotonic() + child.pause
    log.error("died and is started again", process=child.name, how=how, lived_seconds=round(lived, 1), pause=child.pause)
    child.pause = min(2 * child.pause, LONGEST_PAUSE_SECONDS)
    return True


def _end(children: Sequence[Child], wakened: Wakened) -> None:
    """SIGTERM for all at once, SIGKILL for what is left after END_SECONDS."""
    living = [child for child in children if child.pid]
    for child in living:
        os.kill(child.pid, signal.SIGTERM)
    deadline = time.monotonic() + END_SECONDS
    for child in living:
        while _reaped(child) is None:
            if time.monotonic() > deadline:
                log.error("did not end and is killed", process=child.name, pid=child.pid)
                os.kill(child.pid, signal.SIGKILL)
            wakened.wait(1.0)
