"""Worker slots: a locked file each, in the data folder. Its lock proves that the slot's worker lives, its token names it.

The system lets go of the lock when the worker dies, however it dies. A worker that finds a slot free is therefore certain
that the slot's last worker is gone, and may take up its runs at once. The token is drawn when the file is made and stays.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from app.errors import StorageRefused
from app.private_files import make_private_file, make_private_folder

TOKEN_BYTES = 16


@contextmanager
def slot(folder: Path) -> Iterator[str]:
    """The token of the first free slot of this folder, held until the end of the block. Raises StorageRefused."""
    make_private_folder(folder)
    for number in count():
        file = folder / f"worker-{number}.lock"
        make_private_file(file)
        descriptor = _lock(file)
        if descriptor is None:
            continue
        try:
            yield _read_or_draw_token(file, descriptor)
        finally:
            os.close(descriptor)
        return


def is_free(folder: Path, token: str) -> bool:
    """Whether this folder has a slot of that name and its worker is gone. False says nothing: it may be another machine's."""
    for file in folder.glob("worker-*.lock"):
        if file.read_text() == token:
            descriptor = _lock(file)
            if descriptor is None:
                return False
            os.close(descriptor)
            return True
    return False


def _lock(file: Path) -> int | None:
    """An open descriptor that holds the lock; None if another process, or another slot's holder here, has it."""
    descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _read_or_draw_token(file: Path, descriptor: int) -> str:
    token = os.read(descriptor, 4 * TOKEN_BYTES).decode()
    if len(token) == 2 * TOKEN_BYTES:
        return token
    token = secrets.token_hex(TOKEN_BYTES)
    try:
        os.ftruncate(descriptor, 0)  # Half a token is left where the disk was full at the last attempt.
        os.pwrite(descriptor, token.encode(), 0)
        os.fsync(descriptor)
    except OSError as error:
        raise StorageRefused(
            f"The file {file} cannot be written: {error.strerror}.", "Free some space on the disk of the data folder."
        ) from error
    return token
