"""Bytes on the wire between ranks, from the kernel's own TCP counters of every connection.

TCP_INFO (Linux) counts per socket: bytes_sent at offset 200, of which bytes_retrans at 208 are resends and no traffic;
bytes_received at 128. Ranks tell each other, through the store and never through the group under measurement, which
sockets they have, so that each connection belongs to one pair of ranks. Left out: sockets inherited from the agent, and
every connection to the store.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch.distributed as dist

Matrix = tuple[tuple[int, ...], ...]  # bytes, senders as rows, receivers as columns

TCP_ESTABLISHED = 1
# What a socket answers that was closed, or whose number was given to something else, between listing and looking.
CLOSED_MEANWHILE = (errno.EBADF, errno.ENOTSOCK, errno.ENOTCONN)
_RECEIVED, _SENT, _RESENT = 128, 200, 208
_INFO_BYTES = _RESENT + 8
_POLL_SECONDS = 0.001
_SETTLE_SECONDS = 3.0  # eight ranks on one busy core took most of a second
_TRIED_BYTES = 10
LOOPBACK = "127.0.0.1"


class WireUnreadable(Exception):
    """Bytes cannot be counted here; the message says what is missing."""


@dataclass(frozen=True)
class Socket:
    """One end of an established TCP connection of this process. Addresses as (host, port)."""

    local: tuple[str, int]
    peer: tuple[str, int]
    sent: int
    received: int


@dataclass(frozen=True)
class Reading:
    """All connections between ranks at one moment: bytes sent so far. `settled`: all of it has arrived."""

    sent: Matrix
    settled: bool

    def since(self, earlier: Reading) -> Matrix:
        """Bytes sent between the two readings."""
        return subtract(self.sent, earlier.sent)


def subtract(minuend: Matrix, subtrahend: Matrix) -> Matrix:
    """Element by element."""
    return tuple(
        tuple(a - b for a, b in zip(row, other, strict=True)) for row, other in zip(minuend, subtrahend, strict=True)
    )


def socket_inodes() -> frozenset[str]:
    """Every socket this process has open, by inode. Called before joining: these are the agent's."""
    return frozenset(_inode_by_descriptor().values())


def require_counters() -> None:
    """Raise WireUnreadable unless the kernel counts bytes per TCP socket, seen on a connection of our own."""
    if not hasattr(socket, "TCP_INFO") or not os.path.isdir("/proc/self/fd"):
        raise WireUnreadable("this operating system has no TCP_INFO byte counters (they are Linux's)")
    with socket.socket() as probe:
        size = len(probe.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512))
    if size < _INFO_BYTES:
        raise WireUnreadable(f"this kernel's TCP_INFO has {size} bytes; byte counters need {_INFO_BYTES} (Linux 4.19 or newer)")
    seen = _counted(_TRIED_BYTES)
    if seen != (_TRIED_BYTES, _TRIED_BYTES):  # a sandbox may fill the fields that it does not keep with zeros
        raise WireUnreadable(f"this system's TCP_INFO does not count: {_TRIED_BYTES} bytes over a socket were told as {seen}")


def _counted(size: int) -> tuple[int, int] | None:
    """Bytes sent and received as the counters tell them, after `size` bytes have gone through a connection of this process."""
    with socket.create_server((LOOPBACK, 0)) as server, socket.create_connection(server.getsockname()) as near:
        far, _ = server.accept()
        with far:
            near.sendall(bytes(size))
            far.recv(size, socket.MSG_WAITALL)
            sender, receiver = _established(near.fileno()), _established(far.fileno())
    return None if sender is None or receiver is None else (sender.sent, receiver.received)


class WireMeter:
    """Reads the same moment on all ranks; every rank must call `settle` equally often."""

    def __init__(self, store: dist.Store, rank: int, world_size: int, inherited: frozenset[str], store_port: int) -> None:
        require_counters()
        self._store, self._rank, self._world_size = store, rank, world_size
        self._inherited, self._store_port = inherited, store_port
        self._readings = 0

    def settle(self, bound_seconds: float = _SETTLE_SECONDS) -> Reading:
        """Wait until everything sent has been received, twice in a row with the same totals; or give up, unsettled.

        Returns the same reading on every rank: all of them judge the same tables. The bound counts from the first reading,
        in which every rank takes part: how long the others wait for a slow one says nothing about what is under way.
        """
        reading, _ = self._read(time.monotonic())
        began = time.monotonic()
        while True:
            again, waited = self._read(began)
            if again.settled and again.sent == reading.sent:
                return again
            if waited > bound_seconds:  # the slowest rank's clock, so that all ranks stop at the same reading
                return Reading(again.sent, settled=False)
            reading = again
            time.sleep(_POLL_SECONDS)

    def _read(self, began: float) -> tuple[Reading, float]:
        """One table from every rank, and the longest time any of them has been at it. A barrier, too."""
        self._readings += 1
        sockets = [[*end.local, *end.peer, end.sent, end.received] for end in self._own_sockets()]
        own = {"sockets": sockets, "waited": time.monotonic() - began}
        self._store.set(self._key(self._readings, self._rank), json.dumps(own))
        if self._readings > 2:  # everyone who posted reading n has read n-1, so n-2 is done with
            self._store.delete_key(self._key(self._readings - 2, self._rank))
        keys = [self._key(self._readings, rank) for rank in range(self._world_size)]
        tables = [json.loads(table) for table in self._store.multi_get(keys)]
        return _assemble([table["sockets"] for table in tables]), max(table["waited"] for table in tables)

    def _key(self, reading: int, rank: int) -> str:
        return f"wire/{reading}/{rank}"

    def _own_sockets(self) -> list[Socket]:
        found = []
        for descriptor, inode in _inode_by_descriptor().items():
            if inode not in self._inherited:
                end = _established(descriptor)
                if end is not None and self._store_port not in (end.local[1], end.peer[1]):
                    found.append(end)
        return found


def _assemble(tables: list[list[list[str | int]]]) -> Reading:
    """Match the two ends of each connection. An end whose other end no rank has is no traffic between ranks."""
    owner = {(row[0], row[1], row[2], row[3]): rank for rank, table in enumerate(tables) for row in table}
    received = {(row[0], row[1], row[2], row[3]): int(row[5]) for table in tables for row in table}
    matrix = [[0] * len(tables) for _ in tables]
    settled = True
    for rank, table in enumerate(tables):
        for local_host, local_port, peer_host, peer_port, sent, _ in table:
            other_end = (peer_host, peer_port, local_host, local_port)
            if other_end in owner:
                matrix[rank][owner[other_end]] += int(sent)
                settled = settled and received[other_end] == sent
    return Reading(tuple(tuple(row) for row in matrix), settled)


def _inode_by_descriptor() -> dict[int, str]:
    """This process's open sockets: descriptor to "socket:[inode]"."""
    found = {}
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []:
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the directory's own descriptor, closed by now
            continue
        if target.startswith("socket:"):
            found[int(name)] = target
    return found


def _established(descriptor: int) -> Socket | None:
    """The socket's ends and counters if it is an established TCP connection.

    Raises WireUnreadable when the socket is there and cannot be asked: left out, its bytes would be missing in the sum.
    """
    try:
        return _look_at(descriptor)
    except OSError as error:
        if error.errno in CLOSED_MEANWHILE:
            return None
        raise WireUnreadable(f"the counters of an open socket cannot be read: {error}") from error


def _look_at(descriptor: int) -> Socket | None:
    end = socket.socket(fileno=descriptor)  # not a copy, for which a process at its limit of open files has no room
    try:
        if end.family not in (socket.AF_INET, socket.AF_INET6) or end.type != socket.SOCK_STREAM:
            return None
        info = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
        if info[0] != TCP_ESTABLISHED:
            return None
        sent, resent = struct.unpack_from("QQ", info, _SENT)
        (received,) = struct.unpack_from("Q", info, _RECEIVED)
        return Socket(_address(end.getsockname()), _address(end.getpeername()), sent - resent, received)
    finally:
        end.detach()  # or it would be closed


def _address(name: tuple[str, int]) -> tuple[str, int]:
    """Host and port; an IPv4 address seen through an IPv6 socket is the same address."""
    return name[0].removeprefix("::ffff:"), name[1]


@dataclass(frozen=True)
class Windows:
    """Repeated readings of the bytes of one step."""

    matrix: Matrix  # the most frequent reading
    readings: int
    agreeing: int  # how many were that one
    settled: bool


def measure_windows(meter: WireMeter, step: Callable[[], None], repetitions: int, on_reading: Callable[[int], None]) -> Windows:
    """Repeat `step` so many times and read after each; stop where a window does not close.

    Every reading counts. Resends are subtracted and windows are closed, so that honest steps read the same every time (16,000
    readings on a busy machine, none off): a reading that is off says that a step sent something else.
    """
    readings: list[Matrix] = []
    before = meter.settle()
    settled = before.settled
    while settled and len(readings) < repetitions:
        on_reading(len(readings) + 1)
        step()
        after = meter.settle()
        settled = after.settled
        readings.append(after.since(before))
        before = after
    most_frequent = max(readings, key=readings.count, default=before.since(before))
    return Windows(most_frequent, len(readings), readings.count(most_frequent), settled)
