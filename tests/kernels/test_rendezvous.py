"""Who can reach a run from outside of this machine: nobody."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import RunCancelled
from app.runs.launch import Event, LocalLauncher
from kernels import processes
from kernels.spec import Experiment, RunSpec
from tests.runs.traces import sockets_of

pytestmark = pytest.mark.torchrun

LISTENS = "0A"


@pytest.fixture
def launcher() -> Iterator[LocalLauncher]:
    with LocalLauncher(extra_strategies="tests.runs.faulty_strategies") as launcher:
        yield launcher


def addresses_listened_on(pid: int) -> list[str]:
    """Where these sockets take connections from; /proc writes an address as hexadecimal words in the machine's byte order."""
    mine, found = sockets_of(pid), []
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:] if Path(f"/proc/net/{table}").exists() else []:
            fields = line.split()
            words = bytes.fromhex(fields[1].partition(":")[0])
            packed = b"".join(words[start:start + 4][::-1] for start in range(0, len(words), 4))
            if fields[3] == LISTENS and fields[9] in mine:
                found.append(socket.inet_ntop(family, packed))
    return found


def test_the_store_and_the_ranks_of_a_run_listen_on_loopback_alone(launcher: LocalLauncher) -> None:
    heard: list[str] = []

    def look(event: Event) -> None:
        if event.facts.get("phase") == "warming up" and not heard and launcher.host_pid is not None:
            [agent] = processes.children(launcher.host_pid)
            for pid in (agent, *processes.children(agent)):
                heard.extend(addresses_listened_on(pid))

    hangs = RunSpec(2, (Experiment("faulty", options={"fault": "hangs"}),), time_limit_seconds=600.0)
    with pytest.raises(RunCancelled):
        launcher.run(hangs, look, cancelled=lambda: bool(heard))
    assert len(heard) >= 3, "the store of the agent, and gloo of each rank"
    assert all(ipaddress.ip_address(address).is_loopback for address in heard), heard
