"""The socket meter against sockets whose traffic is known."""

from __future__ import annotations

import errno
import json
import os
import resource
import socket
import struct
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch.distributed as dist

from kernels.meters import wire
from kernels.meters.wire import Reading, WireMeter, WireUnreadable, measure_windows, socket_inodes, subtract


@pytest.fixture
def connection() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of one TCP connection over 127.0.0.1."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as near:
        far, _ = server.accept()
        with far:
            yield near, far


@pytest.fixture
def store() -> dist.Store:
    return dist.HashStore()


def rows(*ends: socket.socket) -> list[list[str | int]]:
    """What a rank that holds these sockets would post."""
    found = [wire._established(end.fileno()) for end in ends]
    return [[*end.local, *end.peer, end.sent, end.received] for end in found if end is not None]


def test_bytes_sent_and_received_are_those_of_the_application(connection: tuple[socket.socket, socket.socket]) -> None:
    near, far = connection
    near.sendall(b"x" * 1000)
    far.recv(1000, socket.MSG_WAITALL)
    far.sendall(b"y" * 30)
    near.recv(30, socket.MSG_WAITALL)
    ends = [wire._established(end.fileno()) for end in connection]
    assert [(end.sent, end.received) for end in ends if end is not None] == [(1000, 30), (30, 1000)]


def test_each_connection_is_given_to_the_two_ranks_that_hold_its_ends(connection: tuple[socket.socket, socket.socket]) -> None:
    near, far = connection
    near.sendall(b"x" * 7)
    far.recv(7, socket.MSG_WAITALL)
    reading = wire._assemble([[], rows(near), rows(far)])
    assert reading == Reading(((0, 0, 0), (0, 0, 7), (0, 0, 0)), settled=True)


def test_bytes_still_under_way_leave_a_reading_unsettled() -> None:
    here, there = ["127.0.0.1", 1000], ["127.0.0.1", 2000]
    reading = wire._assemble([[[*here, *there, 50, 0]], [[*there, *here, 0, 20]]])
    assert reading.sent == ((0, 50), (0, 0))
    assert not reading.settled


def test_a_connection_to_somebody_who_is_no_rank_does_not_count(connection: tuple[socket.socket, socket.socket]) -> None:
    near, _ = connection
    assert wire._assemble([rows(near), []]).sent == ((0, 0), (0, 0))


def test_an_ipv4_address_seen_through_an_ipv6_socket_is_the_same_address() -> None:
    assert wire._address(("::ffff:127.0.0.1", 80)) == ("127.0.0.1", 80)


def test_inherited_sockets_and_those_to_the_store_are_left_out(
        connection: tuple[socket.socket, socket.socket], store: dist.Store) -> None:
    near, far = connection
    every = WireMeter(store, rank=0, world_size=1, inherited=frozenset(), store_port=0)
    inherited = WireMeter(store, rank=0, world_size=1, inherited=socket_inodes(), store_port=0)
    to_store = WireMeter(store, rank=0, world_size=1, inherited=frozenset(), store_port=near.getsockname()[1])
    ports = {near.getsockname()[1], far.getsockname()[1]}

    def seen(meter: WireMeter) -> set[int]:
        return {end.local[1] for end in meter._own_sockets()} & ports

    assert seen(every) == ports
    assert seen(inherited) == set()
    assert seen(to_store) == set()


def test_a_meter_on_one_rank_settles_at_once(store: dist.Store) -> None:
    meter = WireMeter(store, rank=0, world_size=1, inherited=frozenset(), store_port=0)
    assert meter.settle() == Reading(((0,),), settled=True)


@pytest.mark.parametrize(("slow_reading", "settled"), [(0, True), (1, False)])
def test_a_late_rank_costs_no_patience_and_bytes_that_do_not_arrive_do(
        monkeypatch: pytest.MonkeyPatch, store: dist.Store, slow_reading: int, settled: bool) -> None:
    """One reading takes an hour: the first, in which ranks wait for the last one, or the next, with bytes under way."""
    clock = [0.0]
    told = enumerate(Reading(((0, 5), (0, 0)), arrived) for arrived in (False, False, True, True))

    def read(began: float) -> tuple[Reading, float]:
        number, reading = next(told)
        clock[0] += 3600.0 * (number == slow_reading)
        return reading, clock[0] - began

    meter = WireMeter(store, rank=0, world_size=2, inherited=frozenset(), store_port=0)
    monkeypatch.setattr(wire, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=lambda _: None))
    monkeypatch.setattr(meter, "_read", read)
    assert meter.settle().settled is settled


def test_readings_leave_no_keys_of_the_past_in_the_store(store: dist.Store) -> None:
    meter = WireMeter(store, rank=0, world_size=1, inherited=frozenset(), store_port=0)
    for _ in range(50):
        meter.settle()
    assert store.num_keys() <= 3


class Scripted:
    """A meter whose readings are given."""

    def __init__(self, *totals: int, settled: bool = True) -> None:
        self.readings = iter([Reading(((0, total), (0, 0)), settled) for total in totals])

    def settle(self) -> Reading:
        return next(self.readings)


def windows_of(meter: Scripted, repetitions: int = 3) -> wire.Windows:
    return measure_windows(meter, lambda: None, repetitions, lambda reading: None)  # type: ignore[arg-type]


def test_three_equal_readings_suffice() -> None:
    assert windows_of(Scripted(0, 10, 20, 30)) == wire.Windows(((0, 10), (0, 0)), readings=3, agreeing=3, settled=True)


def test_a_reading_that_is_off_once_is_told_and_not_measured_away() -> None:
    assert windows_of(Scripted(0, 10, 68, 78)) == wire.Windows(((0, 10), (0, 0)), readings=3, agreeing=2, settled=True)


def test_as_many_readings_are_taken_as_were_asked_for_whatever_they_say() -> None:
    triangular = [n * (n + 1) // 2 for n in range(20)]
    windows = windows_of(Scripted(*triangular), repetitions=5)
    assert (windows.readings, windows.agreeing) == (5, 1)


def test_without_a_first_reading_that_settles_nothing_is_measured() -> None:
    assert windows_of(Scripted(10, settled=False)) == wire.Windows(((0, 0), (0, 0)), readings=0, agreeing=0, settled=False)


def test_a_window_that_does_not_close_ends_the_measurement() -> None:
    meter = Scripted(0, 10, 20, 30)
    meter.readings = iter([Reading(((0, 0), (0, 0)), True), Reading(((0, 10), (0, 0)), False)])
    windows = windows_of(meter)
    assert (windows.readings, windows.settled) == (1, False)


def test_differences_are_taken_element_by_element() -> None:
    assert subtract(((5, 7), (1, 2)), ((1, 2), (1, 0))) == ((4, 5), (0, 2))


def test_without_tcp_info_the_meter_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, store: dist.Store) -> None:
    monkeypatch.delattr(socket, "TCP_INFO")
    with pytest.raises(WireUnreadable, match="TCP_INFO"):
        WireMeter(store, rank=0, world_size=1, inherited=frozenset(), store_port=0)


def test_a_kernel_whose_tcp_info_is_too_short_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_INFO_BYTES", 100_000)
    with pytest.raises(WireUnreadable, match="byte counters need"):
        wire.require_counters()


def tcp_info(sent: int, resent: int, received: int) -> bytes:
    """What the kernel would answer for an established connection with these counters."""
    info = bytearray(240)
    info[0] = wire.TCP_ESTABLISHED
    struct.pack_into("Q", info, 128, received)
    struct.pack_into("QQ", info, 200, sent, resent)
    return bytes(info)


def test_what_was_sent_again_is_no_traffic(
        monkeypatch: pytest.MonkeyPatch, connection: tuple[socket.socket, socket.socket]) -> None:
    monkeypatch.setattr(socket.socket, "getsockopt", lambda *_: tcp_info(sent=1048, resent=48, received=7))
    end = wire._established(connection[0].fileno())
    assert end is not None
    assert (end.sent, end.received) == (1000, 7)


def test_counters_that_stay_at_zero_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "getsockopt", lambda *_: tcp_info(sent=0, resent=0, received=0))
    with pytest.raises(WireUnreadable, match=r"does not count: 10 bytes over a socket were told as \(0, 0\)"):
        wire.require_counters()


def test_at_the_limit_of_open_files_every_socket_is_still_read(connection: tuple[socket.socket, socket.socket]) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with os.scandir("/proc/self/fd") as listed:
        most = max(int(entry.name) for entry in listed) + 1
    kept: list[int] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        with pytest.raises(OSError, match="Too many open files"):
            kept.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(most + 1))
        ends = [wire._established(end.fileno()) for end in connection]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in kept:
            os.close(descriptor)
    assert None not in ends
    connection[0].sendall(b"open still")
    assert connection[1].recv(10, socket.MSG_WAITALL) == b"open still"


def test_a_socket_closed_meanwhile_is_no_connection() -> None:
    with socket.socket() as gone:
        number = gone.fileno()
    assert wire._established(number) is None


def test_an_open_socket_that_cannot_be_read_is_not_left_out(
        monkeypatch: pytest.MonkeyPatch, connection: tuple[socket.socket, socket.socket]) -> None:
    def refuse(*_: object) -> bytes:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(socket.socket, "getsockopt", refuse)
    with pytest.raises(WireUnreadable, match="Operation not permitted"):
        wire._established(connection[0].fileno())


def test_the_store_carries_plain_json(store: dist.Store) -> None:
    WireMeter(store, rank=0, world_size=1, inherited=frozenset(), store_port=0).settle()
    table = json.loads(store.get("wire/2/0"))
    assert set(table) == {"sockets", "waited"}
