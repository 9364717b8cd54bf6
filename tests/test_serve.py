"""The web process from outside: it starts, and told to stop it finishes what it has begun."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unittest.mock import Mock, call

import pytest
import uvicorn
from uvicorn.server import ServerState

from app.web import arrival
from app.web.arrival import PunctualProtocol
from tests.ports import free_port
from tests.web.sites import LESSON
from tests.web.web_process import web_process

HASTE_SECONDS = 0.5
BODY = b"answer=56&variant=0&submission=one"
PATIENCE = 120  # seconds


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def process(tmp_path: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    with web_process(tmp_path, port) as started:
        yield started


@pytest.fixture
def hasty(tmp_path: Path, port: int) -> Iterator[tuple[str, int]]:
    """The address of one that gives a request a fraction of a second to arrive."""
    with web_process(tmp_path, port, HASTE_SECONDS):
        yield "127.0.0.1", port


def test_a_request_under_way_is_answered_before_the_process_ends(process: subprocess.Popen[str], port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.putrequest("POST", f"{LESSON}/checkpoints/eight-gpus")
    connection.putheader("Content-Type", "application/x-www-form-urlencoded")
    connection.putheader("Content-Length", str(len(BODY)))
    connection.endheaders(BODY[:10])
    other = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    other.request("GET", "/healthz")  # by its answer the server has read what was sent before
    assert other.getresponse().read() == b'{"status":"ok"}'
    process.send_signal(signal.SIGTERM)
    connection.send(BODY[10:])
    assert connection.getresponse().status == 303
    connection.close()
    other.close()
    assert process.wait(timeout=PATIENCE) in (0, -signal.SIGTERM)


HALF_SENT = {
    "nothing": b"",
    "half a header": b"GET /healthz HTTP/1.1\r\nHost: localh",
    "half a body": b"POST /theme HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\nthe",
    "half a body that nobody reads": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\nthe",
}


@pytest.mark.parametrize("sent", HALF_SENT.values(), ids=HALF_SENT)
def test_a_request_that_does_not_arrive_does_not_hold_its_connection(hasty: tuple[str, int], sent: bytes) -> None:
    """Neither in silence nor byte by byte."""
    for dripping in (b"", b"x"):
        with socket.create_connection(hasty, timeout=PATIENCE) as connection:
            connection.sendall(sent)
            connection.settimeout(HASTE_SECONDS / 5)
            assert any(is_dropped(connection, dripping) for _ in range(1000))


def is_dropped(connection: socket.socket, dripping: bytes) -> bool:
    """After reading for a while, and sending so much more if nothing has come."""
    try:
        with suppress(TimeoutError):
            return connection.recv(10_000) == b""
        connection.sendall(dripping)
    except ConnectionError:
        return True
    return False


def test_a_connection_is_watched_only_while_a_request_is_on_its_way() -> None:
    """On a loop that runs nothing and keeps what is to be called later."""
    loop = Mock(create_task=Mock(side_effect=lambda answering: Mock(closed=answering.close())))
    config = uvicorn.Config(Mock(), log_config=None)
    config.load()
    connection = PunctualProtocol(config, ServerState(), {}, loop)
    connection.connection_made(Mock(get_extra_info=Mock(return_value=None)))
    limit = loop.call_later.return_value
    assert loop.call_later.call_args == call(arrival.ARRIVAL_SECONDS, connection.transport.abort)
    connection.data_received(b"GET /healthz HTTP/1.1\r\n")
    assert (loop.call_later.call_count, limit.cancel.call_count) == (1, 0)
    connection.data_received(b"Host: localhost\r\n\r\n")
    assert (loop.call_later.call_count, limit.cancel.call_count) == (1, 1)


def test_the_web_process_never_loads_torch_or_font_tools(process: subprocess.Popen[str]) -> None:
    loaded = Path(f"/proc/{process.pid}/maps").read_text()
    assert "torch" not in loaded
    assert "fontTools" not in loaded
