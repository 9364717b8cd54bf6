"""Logs: a line a request with its id, as JSON, and nothing of what a learner sent."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import structlog
from fastapi.testclient import TestClient

from app.web import learner
from app.web.logs import configure_logs
from tests.web.sites import LESSON, make_app, serving


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


def test_an_error_nobody_foresaw_is_traced_once_with_the_id_that_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: io.StringIO
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    app = make_app(tmp_path)
    monkeypatch.setattr(learner, "past", fail)
    with serving(app) as url:
        page = httpx.get(f"{url}/me")
    app.state.site.database.close()
    [traced] = [line for line in lines(written) if "exception" in line]
    assert "ZeroDivisionError" in str(traced["exception"])
    assert traced["request_id"] == page.headers["x-request-id"]
    assert str(traced["request_id"]) in page.text


def test_a_stranger_cannot_choose_the_id_of_a_request(client: TestClient) -> None:
    assert client.get("/healthz", headers={"x-request-id": "chosen-12345678"}).headers["x-request-id"] != "chosen-12345678"
