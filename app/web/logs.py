"""Structured logs: one JSON object a line on stderr, one line a request, each with the request's id.

A line names the route as written in the code and never the query or the body, so that no answer, code or id of a learner
gets into a log. JSON encodes line breaks: nobody can forge a line.
"""

from __future__ import annotations

import logging
import re
import secrets
import sys
import time
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Any, TextIO

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log: structlog.stdlib.BoundLogger = structlog.get_logger("app.web")
OUTSPOKEN = ("app", "uvicorn.error")
REQUEST_ID = re.compile(r"[A-Za-z0-9-]{8,64}")


def configure_logs(stream: TextIO | None = None) -> None:
    """Sends our own lines and those of libraries through one formatter, to stderr unless told otherwise. For the commands.

    Libraries are heard from warnings on: what they say at other times may repeat addresses or values.
    """
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder(allow=())],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
    ))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in OUTSPOKEN:
        logging.getLogger(name).setLevel(logging.INFO)


def request_id(scope: Scope) -> str:
    """The id of the request being answered; error pages show it."""
    return str(scope["state"]["request_id"])


class RequestLog:
    """Gives each request an id, sends it back, and writes the line. A trusted proxy may bring a well-formed id of its own.

    The connection's own address decides, so this stands outside of what reads X-Forwarded headers.
    """

    def __init__(self, app: ASGIApp, trusted_proxies: Sequence[IPv4Network | IPv6Network] = ()) -> None:
        self.app = app
        self.trusted_proxies = trusted_proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "") if self._is_trusted(scope) else ""
        identity = given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = identity
        method = scope["method"]
        status = 500
        started = time.perf_counter()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = identity
            await send(message)

        # For as long as the task of this request lives, which is longer than this call: uvicorn's line about an error nobody
        # foresaw carries the id too.
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=identity)
        try:
            await self.app(scope, receive, send_with_id)
        finally:
            milliseconds = round((time.perf_counter() - started) * 1000, 2)
            log.info("request", method=method, route=route_of(scope), status=status, milliseconds=milliseconds, **_run(scope))


    def _is_trusted(self, scope: Scope) -> bool:
        try:
            peer = ip_address((scope.get("client") or ("",))[0])
        except ValueError:  # a socket of the file system has no address
            return False
        return any(peer in network for network in self.trusted_proxies)


def _run(scope: Scope) -> dict[str, str]:
    """The run that a request is about, if any: by its id the lines of web and worker are found together."""
    run = scope.get("path_params", {}).get("run_id")
    return {} if run is None else {"run": run[:32]}


def route_of(scope: Scope) -> str:
    """The route's own spelling, such as /lessons/{slug}: what was asked for in particular is not logged."""
    route = scope.get("route")
    return getattr(route, "path", "(no route)")
