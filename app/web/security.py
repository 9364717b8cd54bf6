"""What stands between the network and the routes: headers, same-origin check, size limit. Plain ASGI, outermost first.

    SecurityHeaders    every answer says what a browser may do with it
    HeadAsGet          HEAD is answered wherever GET is
    KnownHosts         a request for a name that is not ours is refused (421)
    AddressLimit       a query of more than 16 KB is refused (422): pages repeat it in every form
    BodyLimit          a body of more than 1 MB is refused (413), declared or not
    SameOrigin         an unsafe method from another site is refused (403)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.settings import is_this_machine

MAX_BODY_BYTES = 1_000_000
MAX_QUERY_BYTES = 16_000  # the longest that our own forms make is a tenth of it
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


def security_headers(frame_ancestors: Sequence[str]) -> dict[str, str]:
    """The same for every answer, files and errors too. No inline script or style is allowed anywhere.

    Referrer-Policy is same-origin and not no-referrer: under the latter browsers send "Origin: null" with our own forms.
    """
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; "
        f"form-action 'self'; base-uri 'none'; object-src 'none'; frame-ancestors {' '.join(frame_ancestors)}"
    )
    return {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    }


class SecurityHeaders:
    """Adds the headers above to every answer that has not set its own."""

    def __init__(self, app: ASGIApp, frame_ancestors: Sequence[str]) -> None:
        self.app = app
        self.headers = security_headers(frame_ancestors)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


class HeadAsGet:
    """Answers HEAD with the headers of GET and no body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return

        async def send_headers_only(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        scope["method"] = "GET"
        await self.app(scope, receive, send_headers_only)


class KnownHosts:
    """Refuses a request for a name that is neither this machine's own nor one of `hosts`; None: any name will do.

    Else a page of another site, whose name its owner makes lead here, could read and send as if it were ours.
    """

    def __init__(self, app: ASGIApp, refusal: ASGIApp, hosts: Collection[str] | None) -> None:
        self.app = app
        self.refusal = refusal
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        known = scope["type"] != "http" or self.hosts is None or self._is_known(Headers(scope=scope).getlist("host"))
        await (self.app if known else self.refusal)(scope, receive, send)

    def _is_known(self, asked: list[str]) -> bool:
        names = [_name(host) for host in asked]
        return bool(names) and all(name in (self.hosts or ()) or is_this_machine(name) for name in names)


def _name(host: str) -> str:
    """Of a Host header, without port and brackets; "" if it is no host."""
    try:
        parts = urlsplit(f"//{host}")
    except ValueError:
        return ""
    return (parts.hostname or "") if parts.netloc == host and "@" not in host else ""


class AddressLimit:
    """Refuses a query that no page of ours could make. A lesson carries its query in each of its forms, and a bad value comes
    with a message of its own, so that 64 KB of names came back as megabytes."""

    def __init__(self, app: ASGIApp, refusal: ASGIApp, limit: int = MAX_QUERY_BYTES) -> None:
        self.app = app
        self.refusal = refusal
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        too_long = scope["type"] == "http" and len(scope["query_string"]) > self.limit
        await (self.refusal if too_long else self.app)(scope, receive, send)


class BodyLimit:
    """Refuses a body over the limit: at once where its length is declared, else as soon as too much has arrived.

    The latter happens while a route reads, so it is an HTTPException, the one error that form parsing lets through.
    """

    def __init__(self, app: ASGIApp, refusal: ASGIApp, limit: int = MAX_BODY_BYTES) -> None:
        self.app = app
        self.refusal = refusal
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal() or len(declared) > 12 or int(declared) > self.limit:
            await self.refusal(scope, receive, send)
            return
        arrived = 0

        async def receive_counted() -> Message:
            nonlocal arrived
            message = await receive()
            arrived += len(message.get("body", b""))
            if arrived > self.limit:
                raise HTTPException(413)
            return message

        await self.app(scope, receive_counted, send)


class SameOrigin:
    """Refuses an unsafe method that another site's page may have caused.

    Browsers say where a request comes from: in Sec-Fetch-Site, which pages cannot forge, or, where that is not sent (old
    browsers, plain http), in Origin or Referer. A request with none of them comes from no browser page: a command line.
    Hosts are compared without the scheme, since behind a proxy ours may not know that the visitor came by https.
    """

    def __init__(self, app: ASGIApp, refusal: ASGIApp) -> None:
        self.app = app
        self.refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        unsafe = scope["type"] == "http" and scope["method"] not in SAFE_METHODS
        allowed = not unsafe or is_same_origin(Headers(scope=scope))
        await (self.app if allowed else self.refusal)(scope, receive, send)


def is_same_origin(headers: Headers) -> bool:
    """Whether nothing in these headers says that another site sent the request. All of a repeated header must agree."""
    sites = headers.getlist("sec-fetch-site")
    origins = headers.getlist("origin")
    referers = headers.getlist("referer")
    host = headers.get("host", "")
    if sites and any(site not in ("same-origin", "none") for site in sites):
        return False
    if origins:
        return all(_host(origin) == host.lower() for origin in origins)
    if sites or not referers:
        return True
    return all(_host(referer) == host.lower() for referer in referers)


def _host(address: str) -> str | None:
    """The host and port of an http address as the Host header spells them; None for "null" and whatever else is not one."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    return parts.netloc.lower() if parts.scheme in ("http", "https") and parts.netloc else None


def with_security_headers(response: Response, frame_ancestors: Sequence[str]) -> Response:
    """For the one answer that is made outside of SecurityHeaders: the page after an error nobody foresaw."""
    for name, value in security_headers(frame_ancestors).items():
        response.headers.setdefault(name, value)
    return response
