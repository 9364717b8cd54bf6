"""Disks without a free byte, for processes that have their data there."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

Process = subprocess.Popen[bytes] | subprocess.Popen[str]
CAP_SYS_ADMIN = 1 << 21


def may_mount() -> bool:
    """Whether this process may mount a file system."""
    status = Path("/proc/self/status").read_text()
    return bool(int(status.split("CapEff:")[1].split()[0], 16) & CAP_SYS_ADMIN)


PAGE = 4096  # bytes
# On a full file system; or, where mounting is not allowed, in files that may not grow.
NO_ROOM = ["full", "limited"] if may_mount() else ["limited"]


@contextmanager
def small_disk(how: str, parent: Path) -> Iterator[Path]:
    """The folder of a disk that no_room fills: where that is to be `full`, a file system of its own."""
    disk = parent / "disk"
    disk.mkdir()
    if how != "full":
        yield disk
        return
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=True)
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


@contextmanager
def no_room(how: str, disk: Path, process: Process) -> Iterator[None]:
    """A file system without a free byte, or a process that may not write beyond one page."""
    if how == "full":
        filler = disk / "filler"
        fill(filler)
        yield
        filler.unlink()
        return
    with limited(process, PAGE):
        yield


@contextmanager
def limited(process: Process, most: int) -> Iterator[None]:
    """No file of the process may grow beyond so many bytes, nor be written to behind them."""
    before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, before[1]))
    yield
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)


def fill(file: Path) -> None:
    """Write until there is no room for another byte."""
    with file.open("wb", buffering=0) as filler:
        for size in (PAGE, 1):
            with suppress(OSError):
                while filler.write(b"x" * size):
                    continue
