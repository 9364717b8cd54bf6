"""Whether a run has left anything: processes, listening ports, files. Reads /proc, so Linux only."""

from __future__ import annotations

import os
import select
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from app.runs.launch import Event
from kernels import processes

LISTENING = "0A"
# Files by which tests and ranks of tests.runs.faulty_strategies speak.
AT_FAULT = "at-fault"  # in the run's folder: the rank that hangs is about to
TIME_IS_UP = "time-is-up"  # in the host's folder: the time limit is reached
HOLD = "hold"  # beside the host's folder: ranks of data_parallel and ring_all_reduce wait after each step


@dataclass
class Traces:
    """Collects the processes and ports of a run from its events. Give `note` to the launcher as on_event, or call it."""

    agent: int = 0
    ranks: dict[int, int] = field(default_factory=dict)  # rank -> pid
    phases: dict[int, list[str]] = field(default_factory=dict)
    started: dict[int, int] = field(default_factory=dict)  # pid -> start in ticks
    sockets: set[str] = field(default_factory=set)

    def note(self, event: Event) -> None:
        facts = event.facts
        if event.name == "started":
            self.agent = facts["pid"]
            self.started[self.agent] = facts["started"]
        elif event.name == "rank":
            self.ranks[facts["rank"]] = facts["pid"]
            self.started[facts["pid"]] = facts["started"]
        elif "phase" in facts:
            self.phases.setdefault(facts["rank"], []).append(facts["phase"])

    def all_in(self, phase: str, world_size: int) -> bool:
        """True once every rank has said that it is in this phase."""
        return sum(phase in said for said in self.phases.values()) == world_size

    def note_ports(self) -> int:
        """Remember the listening sockets that these processes hold now; returns how many."""
        self.sockets |= listening_sockets(self.started)
        return len(self.sockets)

    def living(self) -> list[int]:
        """Pids of this run that are still running; the same pid with another start is another process."""
        return [pid for pid, started in self.started.items()
                if processes.start_ticks(pid) == started and processes.state(pid) != "dead"]

    def open_ports(self) -> set[str]:
        """Which of the noted sockets still listen."""
        return self.sockets & set(_listening_inodes())


def listening_sockets(pids: dict[int, int]) -> set[str]:
    """Inodes of listening TCP sockets that any of these processes has open."""
    held = {socket for pid in pids for socket in sockets_of(pid)}
    return held & set(_listening_inodes())


def sockets_of(pid: int) -> set[str]:
    """Inodes of the sockets that a process has open."""
    targets = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # Closed meanwhile.
            targets.append(os.readlink(link))
    return {target.removeprefix("socket:[").removesuffix("]") for target in targets if target.startswith("socket:")}


def _listening_inodes() -> list[str]:
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return [row[9] for row in rows if row[3] == LISTENING]


def wait_for_fault(scratch: Path, seconds: float = 120.0) -> None:
    """Until a rank of the run in this folder hangs."""
    deadline = time.monotonic() + seconds
    while not list(scratch.glob(f"run-*/{AT_FAULT}")):
        assert time.monotonic() < deadline, "no rank has come to its fault"
        time.sleep(0.01)


def wait_until_gone(pid: int, seconds: float) -> bool:
    """Wait for the end of a process that need not be ours; False if it still lives after that time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def processes_naming(text: str) -> list[int]:
    """Pids whose command line or working directory holds `text`, this process aside."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            told = entry.joinpath("cmdline").read_bytes().decode(errors="replace") + os.readlink(entry / "cwd")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # Gone meanwhile, or not ours.
        if text in told:
            found.append(int(entry.name))
    return found
