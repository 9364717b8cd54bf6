"""Logs: a line a request with its id, as JSON, and nothing of what a learner sent."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog
from fastapi.testclient import TestClient

from app.web.logs import configure_logs
from tests.web.sites import LESSON


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """Logs as the commands configure them, into memory; put back afterwards."""
    root, stream = logging.getLogger(), io.StringIO()
    handlers, level = root.handlers[:], root.level
    configure_logs(stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_request_is_one_line_with_the_id_that_was_sent_back(client: TestClient, written: io.StringIO) -> None:
    response = client.get(LESSON)
    [line] = [line for line in lines(written) if line["event"] == "request"]
    assert line["request_id"] == response.headers["x-request-id"]
    assert (line["method"], line["route"], line["status"]) == ("GET", "/lessons/{slug}", 200)


def test_no_answer_query_or_cookie_gets_into_a_log(client: TestClient, written: io.StringIO) -> None:
    client.post(f"{LESSON}/checkpoints/eight-gpus?volume.P=13", data={"answer": "448", "submission": "a-submission"})
    client.get("/nothing-of-this?code=SECRET")
    logged = json.dumps(lines(written))
    assert logged.count("request_id") == 2
    for private in ("448", "a-submission", "volume.P", "SECRET", "nothing-of-this", client.cookies["learner"]):
        assert private not in logged


def test_a_well_formed_id_of_a_proxy_is_kept_and_any_other_replaced(client: TestClient) -> None:
    assert client.get("/healthz", headers={"x-request-id": "proxy-12345678"}).headers["x-request-id"] == "proxy-12345678"
    for bad in ("short", "x" * 65, 'a"b,c{d}efgh', "line\\nbreak1"):
        assert client.get("/healthz", headers={"x-request-id": bad}).headers["x-request-id"] != bad
