"""Folders for what a launch writes: each belongs to one living process and goes when that process goes.

The owner holds a lock on the folder itself. The system lets go of it when the owner dies, however it dies, so a folder
that can be locked has no owner. (A pid in the name would not do: two containers may share one temporary directory.)
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "worldsize-run-"


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """A new folder in `parent` (default: the temporary directory), deleted at the end; those of dead owners go first."""
    home = parent or Path(tempfile.gettempdir())
    _sweep(home)
    folder, lock = _locked_folder(home)
    try:
        yield folder
    finally:
        # Files may vanish meanwhile: the launch host deletes the same folder when its launcher dies.
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked_folder(home: Path) -> tuple[Path, int]:
    """A sweep by another process may come between making the folder and locking it; then another folder is made."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=home))
        lock = _lock(folder)
        if lock is not None and folder.exists():
            return folder, lock
        if lock is not None:
            os.close(lock)


def _lock(folder: Path) -> int | None:
    """An open, locked descriptor of the folder; None if somebody else holds it or the folder is gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return None
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return descriptor
    os.close(descriptor)
    return None


def _sweep(home: Path) -> None:
    for folder in home.glob(f"{PREFIX}*"):
        lock = _lock(folder)
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
