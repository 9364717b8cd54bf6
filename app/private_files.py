"""Folders and files that nobody but the server's own user may read: the data folder and the secret in it."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from app.errors import StorageRefused

SECRET_BYTES = 32


def make_private_folder(folder: Path) -> None:
    """The folder and its parents, readable by this user alone where they are new. A folder that exists keeps its mode."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageRefused(
            f"The folder {folder} cannot be made: {error.strerror}.",
            "Set WORLDSIZE_DATA_DIR to a folder that the server's user may write to.",
        ) from error


def make_private_file(path: Path) -> None:
    """An empty file readable by this user alone, or the one that is there.

    SQLite gives a journal the mode of its database, so this one call keeps all of them private.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StorageRefused(
            f"The file {path} cannot be written: {error.strerror}.",
            "Give it and its folder to the server's user, or set WORLDSIZE_DATA_DIR to a folder of that user.",
        ) from error


def read_or_make_secret(path: Path) -> bytes:
    """The bytes that sign cookies: read from the file, or drawn once and kept there.

    Processes that start together end with the same secret: each links a finished file of its own to the name, and only the
    first link succeeds. Raises StorageRefused where the file is readable by others, too short, or out of reach.
    """
    try:
        if not path.exists():
            _make_secret(path)
        _refuse_if_others_may_read(path)
        secret = path.read_bytes()
    except OSError as error:
        raise StorageRefused(
            f"The secret in {path} cannot be read or made: {error.strerror}.",
            "Set WORLDSIZE_SECRET_FILE to a file the server's user may read, or to a new name in a folder it may write to.",
        ) from error
    if len(secret) < SECRET_BYTES:
        raise StorageRefused(
            f"The secret in {path} is {len(secret)} bytes long, and {SECRET_BYTES} are needed.",
            "Delete the file: the next start draws a new secret, and learners start with new cookies.",
        )
    return secret


def _make_secret(path: Path) -> None:
    make_private_folder(path.parent)
    own = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(own, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        os.link(own, path)
    except FileExistsError:
        return  # Another process was first; its secret is the one.
    finally:
        own.unlink()


def _refuse_if_others_may_read(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise StorageRefused(
            f"The secret in {path} may be read by other users (mode {mode:04o}): whoever reads it can sign as any learner.",
            f"If nobody has read it, run chmod 600 {path}. Otherwise delete it: the next start draws a new one.",
        )
