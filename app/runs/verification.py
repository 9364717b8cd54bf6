"""The last `worldsize verify` of this machine: its summary, kept in the data folder for the ledger.

A file and not a table: it is about the machine and not about learners, one process writes it and others only read it. It
is written beside its name and then moved there, so that a reader finds a whole summary or none.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from app.errors import AppError, StorageRefused
from app.private_files import make_private_folder
from app.runs.verify import Cell, Row
from kernels.spec import Environment

FILE = "verification.json"


class VerificationUnreadable(AppError):
    """The file is there, and is not one that this version wrote."""


@dataclass(frozen=True)
class Verification:
    """What was checked, when and with what. `published_held` of `published` figures were reproduced."""

    verified_at: datetime
    quick: bool
    largest: int  # the largest P that was run
    seconds: float
    published: int
    published_held: int
    rows: tuple[Row, ...]
    environment: Environment | None  # None where no run ended with a report

    @property
    def holds(self) -> bool:
        return self.published == self.published_held and all(row.holds for row in self.rows)

    def row(self, strategy: str) -> Row | None:
        return next((row for row in self.rows if row.strategy == strategy), None)


def summarise(
    rows: Sequence[Row], cells: Sequence[Cell], *, published: int, published_held: int, quick: bool, largest: int,
    seconds: float,
) -> Verification:
    """What the ledger shows of a verification that has just ended."""
    environments = (cell.result.environment for cell in cells if cell.result is not None)
    return Verification(datetime.now(UTC), quick, largest, round(seconds, 1), published, published_held, tuple(rows),
                        next(filter(None, environments), None))


def store(folder: Path, verification: Verification) -> None:
    """Put it in the place of the one before. Raises StorageRefused."""
    make_private_folder(folder)
    data = {**asdict(verification), "verified_at": verification.verified_at.isoformat()}
    beside = folder / f".{FILE}.{secrets.token_hex(8)}"
    try:
        with beside.open("w", encoding="utf-8") as file:
            json.dump(data, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(folder / FILE)
    except OSError as error:
        raise StorageRefused(
            f"The summary of this verification cannot be written to {folder}: {error.strerror}.",
            "Make room there, or set WORLDSIZE_DATA_DIR to a folder that may be written to.",
        ) from error
    finally:
        beside.unlink(missing_ok=True)


def load(folder: Path) -> Verification | None:
    """The last one; None before the first. Raises VerificationUnreadable."""
    try:
        data = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise VerificationUnreadable(UNREADABLE) from error
    try:
        rows = tuple(Row(**{**row, "gaps": tuple(row["gaps"])}) for row in data["rows"])
        environment = None if data["environment"] is None else Environment(**data["environment"])
        given = {**data, "verified_at": datetime.fromisoformat(data["verified_at"]), "rows": rows, "environment": environment}
        return Verification(**given)
    except (KeyError, TypeError, ValueError) as error:
        raise VerificationUnreadable(UNREADABLE) from error


UNREADABLE = f"The summary of the last verification ({FILE}) cannot be read; run worldsize verify again."
