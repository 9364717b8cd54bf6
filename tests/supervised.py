"""A supervisor of two children that write their pid and wait: python -m tests.supervised FOLDER FAULT.

FAULT: none, or what the worker does: "refuses" to start, is "deaf" to SIGTERM, or "breaks once".
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from app import supervisor
from app.errors import AppError
from app.supervisor import Child


def main(folder: Path, fault: str) -> int:
    """Until told to stop."""
    supervisor.END_SECONDS = 1.0

    def live(name: str) -> None:
        if name == "worker" and fault == "refuses":
            raise AppError("The port is taken.")
        if name == "worker" and fault == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with (folder / name).open("a") as file:
            file.write(f"{os.getpid()}\n")
        if name == "worker" and fault == "breaks once" and len((folder / name).read_text().split()) == 1:
            raise ZeroDivisionError
        threading.Event().wait()

    return supervisor.supervise([Child("web", lambda: live("web")), Child("worker", lambda: live("worker"))])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
