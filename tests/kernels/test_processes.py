"""What the operating system is asked for, tried on real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kernels import processes

# A parent asks to adopt orphans; its child starts a grandchild in a session of its own and goes; the parent ends what it got.
ADOPTS = """
import os, signal, subprocess, sys
from kernels import processes
processes.adopt_orphans()
subprocess.run(["sh", "-c", "setsid sleep 1000 & echo $! >&2"], check=True)
orphans = processes.children(os.getpid())
while not processes.end_children():
    os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
print(len(orphans), processes.children(os.getpid()))
"""


def test_orphans_are_adopted_and_ended() -> None:
    done = subprocess.run([sys.executable, "-c", ADOPTS], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "1 []\n"


@pytest.mark.parametrize(
    ("code", "words"), [(0, "exit code 0"), (3, "exit code 3"), (-9, "killed by SIGKILL"), (-11, "killed by SIGSEGV")]
)
def test_an_exit_is_told_in_words(code: int, words: str) -> None:
    assert processes.exit_words(code) == words


def test_a_process_is_known_by_pid_and_start() -> None:
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        started = processes.start_ticks(sleeper.pid)
        assert started is not None
        assert sleeper.pid in processes.children(os.getpid())
        sleeper.kill()
    assert processes.start_ticks(sleeper.pid) is None
    assert processes.state(sleeper.pid) == "gone"


def test_other_peoples_processes_that_must_not_be_looked_at_are_no_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where /proc is mounted with hidepid=1: they are listed, and reading them is refused."""
    read_text = Path.read_text

    def read_own(path: Path, *args: str, **kwargs: str) -> str:
        if path == Path("/proc/1/stat"):
            raise PermissionError(1, "Operation not permitted", str(path))
        return read_text(path, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", read_own)
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        assert sleeper.pid in processes.children(os.getpid())
        sleeper.kill()
    assert processes.start_ticks(1) is None


def test_a_stopped_process_is_seen_to_be_stopped() -> None:
    with subprocess.Popen(["sleep", "1000"]) as sleeper:
        sleeper.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, sleeper.pid, os.WSTOPPED | os.WNOWAIT)
        assert processes.state(sleeper.pid) == "stopped"
        sleeper.kill()


def test_a_signal_to_nobody_is_no_error() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    processes.send(gone.pid, signal.SIGKILL)
    processes.send_group(gone.pid, signal.SIGKILL)
