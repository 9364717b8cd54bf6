"""One run as the host sees it: from the fork of its agent until the last of its processes is gone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kernels import processes
from kernels.agent import DUMP_SIGNAL, Entry, Launch, last_lines, run_agent
from kernels.spec import RunSpec

# A run that has failed, or has nothing more to say, gets this long to end by itself.
GRACE_SECONDS = 2.0
# At the time limit: stacks into the logs, then SIGTERM, then SIGKILL.
DUMP_SECONDS = 2.0  # at most; usually a few milliseconds
LOOK_SECONDS = 0.02
TERMINATE_SECONDS = 1.0
STACK_LINES = 6
STACK_HEAD = "most recent call first"
STACK_END = "in _run_module_as_main"  # where every process of this host began

Fact = dict[str, Any]


@dataclass
class Rank:
    """What is known of one rank."""

    pid: int
    phase: str = "starting"
    finished: bool = False


@dataclass
class Failure:
    """The first thing that went wrong with one process; rank None is the agent."""

    rank: int | None
    exit: str = ""
    error: str = ""


@dataclass
class WatchedRun:
    """A run in flight. The host calls `read` when `pipe` is readable, `advance` on every turn, until `outcome` is there."""

    run_id: str
    spec: RunSpec
    folder: Path
    entry: Entry
    pipe: int = -1
    agent_pid: int = -1
    told_all: bool = False
    outcome: Fact | None = None
    _unread: bytes = b""
    _ranks: dict[int, Rank] = field(default_factory=dict)
    _raised: list[Failure] = field(default_factory=list)
    _exits: dict[int, int] = field(default_factory=dict)  # pid -> code, in the order of dying
    _named: tuple[int, int] | None = None  # pid and code of the failed rank that torch elastic stopped for
    _agent_code: int | None = None
    _ending: str = ""  # "timed_out" or "cancelled" once somebody has decided so
    _snapshot: list[Fact] = field(default_factory=list)
    _deadline: float = 0.0
    _steps: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    def start(self, in_child: Callable[[], None]) -> Fact:
        """Fork the agent; `in_child` lets go there of what belongs to the host. Returns the event that says so.

        Raises OSError where there is no room for a folder or no memory for a process.
        """
        self.folder.mkdir(mode=0o700)
        host_pid = os.getpid()
        self.pipe, written = os.pipe()
        self._deadline = time.monotonic() + self.spec.time_limit_seconds
        try:
            self.agent_pid = os.fork()
        except OSError:
            os.close(self.pipe)
            os.close(written)
            raise
        if self.agent_pid == 0:
            try:
                os.close(self.pipe)
                in_child()
                run_agent(Launch(self.spec, self.folder, written, self.entry), host_pid)
            finally:
                os._exit(1)
        os.close(written)
        os.set_blocking(self.pipe, False)
        return {"event": "started", "pid": self.agent_pid, "started": processes.start_ticks(self.agent_pid)}

    def read(self) -> list[Fact]:
        """Take in what the agent and the ranks have told; returns what the launcher wants to know of it."""
        while chunk := self._read_chunk():
            self._unread += chunk
        self.told_all = chunk is not None
        *lines, self._unread = self._unread.split(b"\n")
        return [event for line in lines if (event := self._take_in(json.loads(line)))]

    def _read_chunk(self) -> bytes | None:
        """None: nothing yet. Empty: nothing more, for nobody is left who could write."""
        try:
            return os.read(self.pipe, 65536)
        except BlockingIOError:
            return None

    def _take_in(self, event: Fact) -> Fact | None:
        match event["event"]:
            case "rank":
                self._ranks[event["rank"]] = Rank(event["pid"])
                return event
            case "finished":
                self._ranks[event["rank"]].finished = True
                return None
            case "raised":
                self._raised.append(Failure(event["rank"], error=event["error"]))
                return None
            case "exit":
                self._exits[event["pid"]] = event["code"]
                return None
            case "named":
                self._named = event["pid"], event["code"]
                return None
            case _:
                if "phase" in event:
                    self._ranks[event["rank"]].phase = " ".join(filter(None, [event["phase"], event.get("strategy")]))
                return event

    @property
    def complete(self) -> bool:
        """Every rank has finished and the report is written. How the processes end after that does not matter."""
        return len(self._ranks) == self.spec.P and all(rank.finished for rank in self._ranks.values())

    def cancel(self) -> None:
        """Whoever asked for the run takes it back."""
        if not self._ending:
            self._ending = "cancelled"
            self._terminate_after(0.0)

    def seconds_to_wait(self) -> float:
        """How long the host may sleep before `advance` has something to do."""
        if self._agent_code is not None:
            return 0.02
        due = min((moment for moment, _ in self._steps), default=self._deadline)
        return max(0.0, due - time.monotonic())

    def advance(self) -> None:
        """Whatever is due: the time limit, the next step of an ending, the burial."""
        now = time.monotonic()
        if not self._steps:
            if self.complete or self._raised or any(self._exits.values()):
                self._steps.append((now + GRACE_SECONDS, self._kill))
            elif now >= self._deadline:
                self._time_out()
        for step in [step for step in self._steps if step[0] <= now]:
            self._steps.remove(step)
            step[1]()
        if self._agent_code is None:
            pid, status = os.waitpid(self.agent_pid, os.WNOHANG)
            self._agent_code = os.waitstatus_to_exitcode(status) if pid else None
        if self._agent_code is not None and self.outcome is None:
            # Unless a rank is being traced or hangs in a device, the kernel has killed the ranks already.
            processes.send_group(self.agent_pid, signal.SIGKILL)
            if processes.end_children():
                self._conclude()

    def _time_out(self) -> None:
        self._ending = "timed_out"
        self._snapshot = [{"rank": number, "state": processes.state(rank.pid), "phase": rank.phase}
                          for number, rank in sorted(self._ranks.items())]
        for rank in self._ranks.values():
            processes.send(rank.pid, DUMP_SIGNAL)
        self._await_stacks(time.monotonic() + DUMP_SECONDS)

    def _await_stacks(self, give_up: float) -> None:
        """Look again and again whether all that can write have written; then go on to end them."""
        now = time.monotonic()
        if now >= give_up or all(self._has_written(number, rank) for number, rank in self._ranks.items()):
            self._terminate_after(0.0)
        else:
            self._steps.append((now + LOOK_SECONDS, partial(self._await_stacks, give_up)))

    def _has_written(self, number: int, rank: Rank) -> bool:
        if processes.state(rank.pid) in ("stopped", "dead", "gone"):
            return True
        lines = last_lines(self._log(number)).splitlines()
        return bool(lines) and lines[-1].endswith(STACK_END)

    def _log(self, rank: int) -> Path:
        return self.folder / f"rank-{rank}.log"

    def _terminate_after(self, seconds: float) -> None:
        moment = time.monotonic() + seconds
        self._steps += [(moment, self._terminate), (moment + TERMINATE_SECONDS, self._kill)]

    def _terminate(self) -> None:
        processes.send(self.agent_pid, signal.SIGTERM)

    def _kill(self) -> None:
        processes.send(self.agent_pid, signal.SIGKILL)
        processes.send_group(self.agent_pid, signal.SIGKILL)

    def _conclude(self) -> None:
        self.read()
        if self.complete and self._ending != "cancelled":
            report = json.loads((self.folder / "report.json").read_text())
            self.outcome = {"event": "report", "report": report}
        elif self._ending == "cancelled":
            self.outcome = {"event": "cancelled"}
        elif self._ending == "timed_out":
            self.outcome = {"event": "timed_out", "ranks": self._snapshot, "log_tail": self._stacks()}
        else:
            self.outcome = {"event": "failed", **self._failure_facts()}
        shutil.rmtree(self.folder)

    def abandon(self) -> None:
        """End everything at once; the host itself is about to end."""
        self._kill()
        while not processes.end_children():
            time.sleep(0.005)
        shutil.rmtree(self.folder)

    def _failure_facts(self) -> Fact:
        failure = self._root_cause()
        rank = None if failure.rank is None else self._ranks.get(failure.rank)  # None: failed before it was there
        phase = "starting" if rank is None else rank.phase
        log = self.folder / "agent.log" if failure.rank is None else self._log(failure.rank)
        return {"rank": failure.rank, "exit": failure.exit, "error": failure.error, "phase": phase, "log_tail": last_lines(log)}

    def _root_cause(self) -> Failure:
        """Which process went wrong first.

        When one rank dies, the others lose their connections and raise; then elastic sends SIGTERM to those that are left.
        So a rank that went without a word comes before any that raised, but not if it was elastic's SIGTERM.
        """
        rank_of = {rank.pid: number for number, rank in self._ranks.items()}
        raised = {failure.rank for failure in self._raised}
        silent = [(rank_of[pid], code) for pid, code in self._deaths() if pid in rank_of and rank_of[pid] not in raised]
        if silent:
            number, code = silent[0]
            return Failure(number, processes.exit_words(code))
        if self._agent_code is not None and self._agent_code < 0 and not self._exits:
            return Failure(None, processes.exit_words(self._agent_code))
        if self._raised:
            first = self._raised[0]
            return Failure(first.rank, processes.exit_words(1), first.error)
        return Failure(None, processes.exit_words(self._agent_code or 0))

    def _deaths(self) -> list[tuple[int, int]]:
        """Pid and code of ranks that went wrong by themselves, in order: not those that elastic ended after it had noticed."""
        order = list(self._exits)
        noticed = order.index(self._named[0]) + 1 if self._named and self._named[0] in order else 0
        own = [(pid, code) for pid, code in self._exits.items()
               if code != 0 and (code != -signal.SIGTERM or order.index(pid) < noticed)]
        return own if self._named is None or noticed else [self._named, *own]

    def _stacks(self) -> str:
        """Where each rank was at the time limit: the innermost lines of the stack it wrote to its log."""
        blocks = []
        for number in sorted(self._ranks):
            lines = last_lines(self._log(number), 200).splitlines()
            heads = [index for index, line in enumerate(lines) if STACK_HEAD in line]
            stack = lines[heads[-1] + 1:][:STACK_LINES] if heads else ["  (wrote nothing)"]
            blocks.append("\n".join([f"rank {number}, innermost call first:", *stack]))
        return "\n".join(blocks)
