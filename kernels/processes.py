"""What the launch host asks of the operating system: who dies with whom, and whose child is whose. Standard library only.

On Linux the kernel itself ends what is left: a child can ask to be killed when its parent dies, and a parent can ask to
inherit its orphans. Elsewhere neither exists; there the process group stands in, which ends all that a run started
unless a rank makes a group of its own.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
STATE_WORDS = {
    "R": "running",
    "S": "waiting",
    "D": "waiting for a device",
    "T": "stopped",
    "t": "stopped by a debugger",
    "Z": "dead",
}


def signal_when_parent_dies(number: int) -> None:
    """Have the kernel send this process a signal when its parent dies, however it dies.

    The kernel watches the *thread* that started this process: the signal also comes when that thread ends and the parent
    lives on, which os.getppid() tells apart.
    """
    _prctl(PR_SET_PDEATHSIG, number)


def die_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent dies; the parent may be gone before this is asked for."""
    signal_when_parent_dies(signal.SIGKILL)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, so that it can be found and reaped."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), f"prctl({option}, {value})")


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot: with its pid, a name that is never used twice. None: not known."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def state(pid: int) -> str:
    """What the process is doing, in one or two words."""
    fields = _stat(pid)
    return STATE_WORDS.get(fields[0], fields[0]) if fields else "gone"


def children(pid: int) -> list[int]:
    """The pids whose parent is `pid`, dead ones that nobody has reaped included; empty where there is no /proc."""
    candidates = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()) if _has_proc() else ()
    return [candidate for candidate in candidates if (fields := _stat(candidate)) and int(fields[1]) == pid]


def _has_proc() -> bool:
    return Path("/proc/self/stat").exists()


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat after the name, from `state` (field 3) on; empty if there is no such process.

    Empty, too, for somebody else's process where /proc is mounted with hidepid: no child of ours is among those.
    """
    # The name is in parentheses and may hold spaces and parentheses of its own.
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return []


def exit_words(code: int) -> str:
    """How a process went, from its exit code; a negative one is the number of the signal that ended it."""
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"


def send(pid: int, number: int) -> None:
    """A signal to one process, if it is there."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def send_group(leader_pid: int, number: int) -> None:
    """A signal to every process of a group, if there is such a group."""
    with suppress(ProcessLookupError):
        os.killpg(leader_pid, number)


def end_children() -> bool:
    """SIGKILL for all children of this process, orphans it adopted among them, and reap the dead. True when none is left.

    A child that dies hands its own children up, so this is called again until it says True. Children are named by their
    parent alone: a pid cannot come to mean another process before its parent has reaped it.
    """
    if _none_left():
        return True
    for pid in children(os.getpid()):
        send(pid, signal.SIGKILL)
    return _none_left()


def _none_left() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return True
    return False
