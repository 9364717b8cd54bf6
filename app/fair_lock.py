"""A lock that is handed to whoever has waited longest."""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    """First come, first served. Python's own lock may go back to the thread that has just released it: of 40 threads that
    write in turn, one was then seen to wait for over ten seconds.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()

    def acquire(self, timeout: float) -> bool:
        """Wait for the turn, at most `timeout` seconds. Whether it came."""
        with self._guard:
            if not self._held:
                self._held = True
                return True
            mine = threading.Lock()
            mine.acquire()  # Opened by whoever hands the turn to us.
            self._waiting.append(mine)
        if mine.acquire(timeout=timeout):
            return True
        with self._guard:
            if mine in self._waiting:
                self._waiting.remove(mine)
                return False
        return True  # It came between the time-out and here.

    def release(self) -> None:
        """Hand the turn on; nobody can come in between."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False
