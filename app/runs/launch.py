"""Launcher: a RunSpec in, a RunReport out, or an error that says what became of the run.

LocalLauncher runs on this box through one warm launch host (`python -m kernels.host`), which it starts, watches, replaces
when it dies and ends with itself. Whatever dies, and however, nothing is left running:

    this process      its end of the host's input closes; the host ends all below it and deletes the scratch folder
    the host          the kernel kills the agent, and with it the ranks; the launcher deletes the run's files
    the agent, a rank the host ends what is left of the run
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from app.errors import RunEnded
from app.runs import endings
from app.runs.host_process import LAST_EVENTS, HostGone, HostProcess
from app.runs.scratch import scratch_folder
from kernels.spec import RunReport, RunSpec, report_from_json, to_json

POLL_SECONDS = 0.05
# Importing torch from a cold disk may take most of this.
START_SECONDS = 90.0
# The host ends a run within about a second of its limit, three on a busy machine; past this it is taken for dead.
GRACE_SECONDS = 15.0


@dataclass(frozen=True)
class Event:
    """Something that happened in a run: started, rank or phase, with what the host tells of it."""

    name: str
    facts: Mapping[str, Any]


def ignore(event: Event) -> None:
    """For those who only want the report."""


def never() -> bool:
    """For runs that nobody takes back."""
    return False


OnEvent = Callable[[Event], None]
Cancelled = Callable[[], bool]


class Launcher(Protocol):
    """One way to get a spec run."""

    def run(self, spec: RunSpec, on_event: OnEvent = ignore, cancelled: Cancelled = never) -> RunReport:
        """Blocks until the run has ended; `cancelled` is asked some 20 times a second.

        Raises RunFailed, RunTimedOut or RunCancelled. However it ends, by then nothing of the run is left.
        """


@dataclass
class _Flight:
    """One run on its way: how far it is, and until when there must be news."""

    spec: RunSpec
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    started: bool = False
    handed_over_again: bool = False
    phase: str = "starting"
    deadline: float = field(default_factory=lambda: time.monotonic() + START_SECONDS)

    def take_in(self, facts: Mapping[str, Any]) -> None:
        if facts["event"] == "started":
            self.started = True
            self.deadline = time.monotonic() + self.spec.time_limit_seconds + GRACE_SECONDS
        if "phase" in facts:
            self.phase = " ".join(filter(None, [facts["phase"], facts.get("strategy")]))


class LocalLauncher:
    """Runs on this box, one at a time; threads take turns. A context manager.

    `extra_strategies` names a module whose strategies the host adds to its own: a way for tests to bring theirs.
    """

    def __init__(self, *, extra_strategies: str | None = None, scratch_parent: Path | None = None) -> None:
        self._extra_strategies = extra_strategies
        self._scratch_parent = scratch_parent
        self._turn = threading.Lock()
        self._open = ExitStack()
        self._scratch: Path | None = None
        self._host: HostProcess | None = None

    def __enter__(self) -> Self:
        self._scratch = self._open.enter_context(scratch_folder(self._scratch_parent))
        self._host = self._new_host()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._open:
            self._scratch = None  # From here on no new host is started, also if another thread's run sees this one go.
            if self._host is not None:
                self._host.end()

    @property
    def host_pid(self) -> int | None:
        """The launch host's pid: another one after it had to be replaced, None until the next run after it never came up."""
        return None if self._host is None else self._host.pid

    @property
    def scratch(self) -> Path | None:
        """The folder that holds all files of host and runs; None before the launcher is entered."""
        return self._scratch

    def run(self, spec: RunSpec, on_event: OnEvent = ignore, cancelled: Cancelled = never) -> RunReport:
        """See Launcher. Any other exception, Ctrl-C among them, also ends the run before it goes on."""
        with self._my_turn(cancelled):
            flight = _Flight(spec)
            report = None
            while report is None:
                report = self._follow_to_its_end(self._hand_over(flight), flight, on_event, cancelled)
            return report

    @contextmanager
    def _my_turn(self, cancelled: Cancelled) -> Iterator[None]:
        while not self._turn.acquire(timeout=POLL_SECONDS):
            if cancelled():
                raise endings.cancelled("waiting for its turn")
        try:
            yield
        finally:
            self._turn.release()

    def _follow_to_its_end(
        self, host: HostProcess, flight: _Flight, on_event: OnEvent, cancelled: Cancelled
    ) -> RunReport | None:
        """Unless the run comes to one of its own endings, take it back and wait until it is gone."""
        over = False
        try:
            report = self._follow(host, flight, on_event, cancelled)
            over = True
            return report
        except RunEnded:
            over = True
            raise
        finally:
            if not over and not self._taken_back(host, flight):
                host.kill()

    def _taken_back(self, host: HostProcess, flight: _Flight) -> bool:
        give_up = time.monotonic() + GRACE_SECONDS
        with suppress(HostGone):
            host.send({"cancel": flight.run_id})
            while time.monotonic() < give_up:
                facts = host.next_event(POLL_SECONDS) or {}
                if facts.get("run") == flight.run_id and facts["event"] in LAST_EVENTS:
                    return True
        return False

    def _new_host(self) -> HostProcess:
        if self._scratch is None:
            raise RuntimeError("LocalLauncher is a context manager: with LocalLauncher() as launcher: ...")
        return HostProcess(self._scratch, self._extra_strategies)

    def _hand_over(self, flight: _Flight) -> HostProcess:
        """Give the run to the host, to a new one if the last has died since."""
        request = {"run": flight.run_id, "spec": to_json(flight.spec)}
        if self._host is not None and self._host.alive:
            with suppress(HostGone):
                self._host.start(request)
                return self._host
        if self._host is not None:
            self._host.kill()
        self._host = self._new_host()
        with suppress(HostGone):  # Then its output has ended too, and whoever follows the run sees why.
            self._host.start(request)
        return self._host

    def _replace(self, host: HostProcess) -> tuple[str, str]:
        """End this host; how it went, and the end of its log. A new one is kept warm, unless this one never came up."""
        how, log_tail = host.kill(), host.log_tail()
        self._host = self._new_host() if host.ready and self._scratch is not None else None
        return how, log_tail

    def _follow(self, host: HostProcess, flight: _Flight, on_event: OnEvent, cancelled: Cancelled) -> RunReport | None:
        """None, but only once: the host had died before it could start the run, which may then be given to another."""
        cancel_sent = False
        while True:
            self._check_silence(host, flight)
            try:
                if not cancel_sent and cancelled():
                    cancel_sent = True
                    host.send({"cancel": flight.run_id})
                    if not flight.started:
                        raise endings.cancelled("waiting for the launch host")
                    flight.deadline = min(flight.deadline, time.monotonic() + GRACE_SECONDS)
                facts = host.next_event(POLL_SECONDS)
            except HostGone:
                how, log_tail = self._replace(host)
                if host.ready and not flight.started and not flight.handed_over_again:
                    flight.handed_over_again = True
                    return None
                raise endings.host_died(how, flight.phase, log_tail, had_started=host.ready) from None
            if facts is not None and facts.get("run") == flight.run_id:
                report = _read(facts, flight)
                if report is not None:
                    return report
                on_event(Event(facts["event"], facts))

    def _check_silence(self, host: HostProcess, flight: _Flight) -> None:
        if time.monotonic() > flight.deadline:
            self._replace(host)
            raise endings.host_silent(flight.spec.time_limit_seconds, flight.phase)


def _read(facts: Mapping[str, Any], flight: _Flight) -> RunReport | None:
    """The report, if these facts are it; None while the run goes on. Raises the run's other endings."""
    match facts["event"]:
        case "report":
            return report_from_json(facts["report"])
        case "failed":
            raise endings.failed(facts)
        case "timed_out":
            raise endings.timed_out(facts, flight.spec.time_limit_seconds)
        case "cancelled":
            raise endings.cancelled(flight.phase)
        case _:
            flight.take_in(facts)
            return None
