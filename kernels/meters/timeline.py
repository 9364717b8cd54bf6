"""What a rank did when, on its own monotonic clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from kernels.spec import Interval


class Timeline:
    """Named intervals of one step. On one machine all ranks read the same monotonic clock."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self._intervals: list[tuple[str, float, float]] = []

    @contextmanager
    def interval(self, name: str) -> Iterator[None]:
        """Log what happens inside as one interval."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._intervals.append((name, start, time.monotonic()))

    def record(self, name: str, start: float, end: float) -> None:
        """Log an interval measured elsewhere, such as a collective in flight; from any thread. Times of time.monotonic()."""
        self._intervals.append((name, start, end))

    def clear(self) -> None:
        self._intervals.clear()

    def intervals(self) -> list[Interval]:
        """Everything logged since `clear`, in seconds of the monotonic clock."""
        return [Interval(self.rank, name, start, end) for name, start, end in self._intervals]
