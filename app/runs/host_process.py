"""The launch host from outside: its process, JSON lines to it and from it, and its end with all that it started."""

from __future__ import annotations

import json
import os
import select
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from kernels import schedule

END_SECONDS = 5.0
LOG_LINES = 30
LOG_TAIL_BYTES = 64 * 1024  # more of the log than this is never read for its last lines
LONGEST_LOG_BYTES = 1024 * 1024  # between two runs: a longer log begins anew, for its folder may lie in memory
CODE_ROOT = Path(schedule.__file__).resolve().parents[1]
LAST_EVENTS = ("report", "failed", "timed_out", "cancelled")


class HostGone(Exception):
    """The launch host has closed its output or does not read its input: it is dead or dying."""


class HostProcess:
    """One launch host, started at once; torch is imported while the caller goes on."""

    def __init__(self, scratch: Path, extra_strategies: str | None) -> None:
        scratch.mkdir(exist_ok=True)
        self._scratch = scratch
        self._log = scratch / "host.log"
        command = [sys.executable, "-m", "kernels.host", "--scratch", str(scratch)]
        if extra_strategies is not None:
            command += ["--extra-strategies", extra_strategies]
        self._log.unlink(missing_ok=True)
        with self._log.open("ab") as log:  # Appending, so that the host goes on at the start of a log that was cut.
            # A session of its own: Ctrl-C in a terminal is for the launcher, which then ends the host in good order.
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                             cwd=CODE_ROOT, start_new_session=True, bufsize=0)
        self._input, self._output = _pipes(self._process)
        self._unread = b""
        self._run = _RunProcesses()
        self.ready = False

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def start(self, request: Mapping[str, Any]) -> None:
        """Hand a run over. Raises HostGone if nobody reads it."""
        with suppress(FileNotFoundError):
            if self._log.stat().st_size > LONGEST_LOG_BYTES:
                os.truncate(self._log, 0)
        self.send(request)

    def send(self, request: Mapping[str, Any]) -> None:
        """Raises HostGone if nobody reads it."""
        line = json.dumps(request).encode() + b"\n"
        try:
            while line:
                line = line[self._input.write(line):]
        except BrokenPipeError as error:
            raise HostGone from error

    def next_event(self, seconds: float) -> dict[str, Any] | None:
        """The next line of the host, or None if none comes in time. Raises HostGone at the end of its output."""
        if b"\n" not in self._unread and not self._read_more(seconds):
            return None
        line, newline, rest = self._unread.partition(b"\n")
        if not newline:
            return None
        self._unread = rest
        event: dict[str, Any] = json.loads(line)
        if event["event"] == "ready":
            self.ready = True
        elif event["event"] in ("started", "rank"):
            self._run.add(event["pid"])
        elif event["event"] in LAST_EVENTS:
            self._run.forget()
        return event

    def _read_more(self, seconds: float) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            if not selector.select(seconds):
                return False
        chunk = os.read(self._output.fileno(), 1 << 20)
        if not chunk:
            raise HostGone
        self._unread += chunk
        return True

    def end(self) -> None:
        """Close its input, which ends it and all below it; kill it if that does not, or if it is still importing torch."""
        self._input.close()
        if self.ready:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)
        self.kill()

    def kill(self) -> str:
        """See to it that neither the host nor a run it started is left, nor a file of that run; returns how the host went.

        On Linux the kernel kills agent and ranks when the host dies; elsewhere, and to be sure, their group gets a SIGKILL.
        May be called again.
        """
        self._process.kill()
        code = self._process.wait()
        self._input.close()
        self._output.close()
        self._run.kill()
        for folder in self._scratch.glob("run-*"):
            shutil.rmtree(folder)
        return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"

    def log_tail(self) -> str:
        """The last lines it wrote to its log."""
        with suppress(FileNotFoundError), self._log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
            return "\n".join(log.read(LOG_TAIL_BYTES).decode(errors="replace").splitlines()[-LOG_LINES:])
        return ""


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise RuntimeError("the launch host was started without pipes")
    return process.stdin, process.stdout


class _RunProcesses:
    """The agent and the ranks of the run in flight. A descriptor of each, where the system has such, tells when it is dead."""

    def __init__(self) -> None:
        self._agent_pid: int | None = None
        self._descriptors: list[int] = []

    def add(self, pid: int) -> None:
        """The first one is the agent, which leads the group of all."""
        if self._agent_pid is None:
            self._agent_pid = pid
        if sys.platform == "linux":
            with suppress(ProcessLookupError):
                self._descriptors.append(os.pidfd_open(pid))

    def forget(self) -> None:
        """They have ended."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()
        self._agent_pid = None

    def kill(self) -> None:
        """SIGKILL for the whole group; returns when all are dead."""
        if self._agent_pid is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._agent_pid, signal.SIGKILL)
        give_up = time.monotonic() + END_SECONDS
        for descriptor in self._descriptors:
            select.select([descriptor], [], [], max(0.0, give_up - time.monotonic()))
        self.forget()
