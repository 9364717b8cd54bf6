"""What routes ask for: the site's own objects, and who is visiting."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Annotated

import jinja2
from fastapi import Depends
from itsdangerous import BadSignature, Signer
from starlette.requests import Request
from starlette.responses import Response

from app.course.model import Course, Lesson
from app.db import Database
from app.errors import LessonComing, LessonNotFound
from app.learners.quotas import Allowance
from app.settings import Settings
from app.web.static import Statics

COOKIE_SECONDS = 400 * 24 * 3600  # the longest that browsers keep one


@dataclass(frozen=True)
class Site:
    """Everything a server is made of, opened once in create_app."""

    settings: Settings
    course: Course
    database: Database
    statics: Statics
    environment: jinja2.Environment
    signer: Signer


@dataclass(frozen=True)
class Visitor:
    """Who asks: an opaque random id, and whether the browser already had it (else a cookie is still to be set)."""

    id: str
    known: bool

    def stored(self) -> Visitor:
        """The same learner once something has been written: from now on there is something to read."""
        return replace(self, known=True)

    @property
    def seed(self) -> int:
        """Decides the order of options and of later numbers for this learner."""
        return int.from_bytes(hashlib.sha256(self.id.encode()).digest()[:4], "big")


def site(request: Request) -> Site:
    return request.app.state.site  # type: ignore[no-any-return]


def visitor(request: Request) -> Visitor:
    """The learner a signed cookie names, or a new id. Nothing is stored here, and no cookie is set."""
    signed = request.cookies.get(_cookie_name(request), "")
    try:
        return Visitor(site(request).signer.unsign(signed).decode(), known=True)
    except (BadSignature, UnicodeDecodeError):
        return Visitor(secrets.token_urlsafe(24), known=False)


def lesson(request: Request, slug: str) -> Lesson:
    """The lesson an address names; one that is still coming cannot be opened."""
    entry = site(request).course.entry(slug)
    if entry is None:
        raise LessonNotFound(slug)
    if entry.lesson is None:
        raise LessonComing(slug, entry.title)
    return entry.lesson


SiteDep = Annotated[Site, Depends(site)]
VisitorDep = Annotated[Visitor, Depends(visitor)]
LessonDep = Annotated[Lesson, Depends(lesson)]


def allowance(request: Request, site: SiteDep) -> Allowance:
    """How much whoever asks may store in an hour. The address is the one that trusted proxies tell, else the connection's own.

    It goes into a hash with our secret: counting needs to know an address again, and nobody needs to read it.
    """
    signature = site.signer.get_signature(_network(request.client.host if request.client else ""))
    return Allowance(hashlib.sha256(signature).hexdigest(), site.settings.answer_quota, site.settings.learner_quota)


def _network(host: str) -> str:
    """What one household or one machine has: an IPv4 address, or the 2^64 addresses of an IPv6 network."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv4Address):
        return host
    return str(address.ipv4_mapped or ip_network((int(address), 64), strict=False))


AllowanceDep = Annotated[Allowance, Depends(allowance)]


def remember(request: Request, response: Response, who: Visitor) -> Response:
    """Sets the cookie that lets this browser find its progress again, unless it has it."""
    if not who.known:
        signed = site(request).signer.sign(who.id).decode()
        response.set_cookie(_cookie_name(request), signed, max_age=COOKIE_SECONDS, path="/", httponly=True, samesite="lax",
                            secure=_is_https(request))
    return response


def forget(request: Request, response: Response) -> Response:
    """Takes the cookie back."""
    response.delete_cookie(_cookie_name(request), path="/", httponly=True, samesite="lax", secure=_is_https(request))
    return response


def _cookie_name(request: Request) -> str:
    """Over https the name itself makes browsers insist on Secure, this host and path /."""
    return "__Host-learner" if _is_https(request) else "learner"


def _is_https(request: Request) -> bool:
    return request.url.scheme == "https"
