"""A port for a server that a test starts as a process of its own."""

from __future__ import annotations

import random
import socket
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST = 10_000


def free_port() -> int:
    """Below those that the system hands out, so that no connection made meanwhile can take it before the server does."""
    lowest_handed_out = int(RANGE.read_text().split()[0]) if RANGE.exists() else 32_768
    choices = list(range(LOWEST, lowest_handed_out)) or [0]
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", random.choice(choices)))
            except OSError:
                continue
            return int(probe.getsockname()[1])
