"""Each error -> a status, and a page, a notice for htmx, or JSON under /api."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from app.errors import BadInput, NotFound, NotNow, RunRejected, RunUnreadable, StorageRefused
from app.figures.inputs import echo
from app.web import contexts, course_map
from app.web.logs import log, request_id
from app.web.render import is_htmx, render
from app.web.security import with_security_headers


@dataclass(frozen=True)
class Trouble:
    """What went wrong, for a person. `ours` is set where the fault is the server's: the id helps whoever runs it."""

    status: int
    title: str
    message: str
    fields: Mapping[str, str] = field(default_factory=dict)
    ours: bool = False


NO_PAGE = Trouble(404, "Nothing lives at this address", "The link may be old, or a letter is missing.")
TOO_LARGE = Trouble(413, "That is too much to send", "A form here never needs more than a megabyte. Nothing was stored.")
TOO_LONG = Trouble(422, "This address is too long", "No page here needs one of more than a few lines. Nothing was stored.")
OTHER_SITE = Trouble(403, "This form came from another site", "Nothing was changed. Open the page here and send it once more.")
OTHER_NAME = Trouble(421, "Nothing is served under this name",
                     "Open it by the address that its server printed. Whoever runs it adds names with WORLDSIZE_HOSTS.")
OTHER_LEARNER = Trouble(403, "This run is not yours to cancel", "Only somebody who waits for it can. Nothing was changed.")
BROKEN = Trouble(500, "Something broke on our side", "Your earlier answers are safe. Go back and try again.", ours=True)
NO_STORAGE = Trouble(503, "Nothing can be stored right now",
                     "What you sent just now was not kept: an answer cost no try, and no run was started. "
                     "Send it again in a few minutes.", ours=True)
LONGEST_NAME = 64  # of a field: a visitor may have made it up
SHAPES = ("single", "several", "[key]")  # of a body with two, and of a name at fault: part of where a fault is, and no field
SHAPE_WORDS = {  # what pydantic calls a fault -> what a person reads
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "json_invalid": "is not JSON",
    "model_attributes_type": "must be an object, in braces",
    "dict_type": "must be an object, in braces",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "finite_number": "must be a whole number",
    "string_type": "must be a word",
    "string_unicode": "must be a word",
}
TWO_SHAPES = {"Vary": "HX-Request"}  # one address, a page or a notice
WORDS = {
    403: OTHER_SITE, 404: NO_PAGE, 413: TOO_LARGE,
    400: Trouble(400, "This request cannot be read", "It arrived damaged. Go back and send it once more."),
    405: Trouble(405, "This address takes no such request", "It answers to a form or a link on one of our pages."),
}


def answer(request: Request, trouble: Trouble) -> Response:
    """The same trouble in the shape that whoever asked can use."""
    identity = request_id(request.scope) if trouble.ours else ""
    fields = {echo(name, LONGEST_NAME): text for name, text in trouble.fields.items()}
    if request.url.path.startswith("/api/"):
        body = {"error": trouble.title, "message": trouble.message, "fields": fields}
        body |= {"request_id": identity} if identity else {}
        return JSONResponse(body, trouble.status, headers={"Cache-Control": "no-store"})
    if is_htmx(request):
        notice = contexts.ErrorNotice(trouble.title, _sentence(trouble.message, fields), identity)
        return render(request, notice, trouble.status, {**TWO_SHAPES, "HX-Retarget": "#notice", "HX-Reswap": "innerHTML"})
    rows = course_map.rows(request.app.state.site.course, {}) if trouble.status == 404 else ()
    page = contexts.ErrorPage(trouble.status, trouble.title, trouble.message, fields, identity, rows)
    return render(request, page, trouble.status, TWO_SHAPES)


def _sentence(message: str, fields: Mapping[str, str]) -> str:
    return " ".join([message, *(f"{name}: {text}" for name, text in fields.items())])


class Refusal:
    """An answer as an ASGI application, for the checks that come before any route."""

    def __init__(self, trouble: Trouble) -> None:
        self.trouble = trouble

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await answer(Request(scope), self.trouble)(scope, receive, send)


def add_error_pages(app: FastAPI) -> None:
    """Registers an answer for everything that a route may raise."""
    app.add_exception_handler(NotFound, _not_found)
    app.add_exception_handler(BadInput, _bad_input)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(RunRejected, _run_rejected)
    app.add_exception_handler(NotNow, _not_now)
    app.add_exception_handler(StorageRefused, _no_storage)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _broken)


def _not_found(request: Request, error: Exception) -> Response:
    title = "This run cannot be read here" if isinstance(error, RunUnreadable) else NO_PAGE.title
    return answer(request, Trouble(404, title, str(error)))


def _bad_input(request: Request, error: Exception) -> Response:
    assert isinstance(error, BadInput)
    return answer(request, Trouble(422, "Something in this form cannot be used", "Nothing was stored.", error.errors))


def _invalid(request: Request, error: Exception) -> Response:
    """What FastAPI refuses before a route runs: a missing field, a word where a number belongs."""
    assert isinstance(error, RequestValidationError)
    fields = {_field(detail["loc"]): SHAPE_WORDS.get(detail["type"], str(detail["msg"])) for detail in error.errors()}
    return _bad_input(request, BadInput(fields))


def _field(where: Sequence[str | int]) -> str:
    """The name of a field; where all of the body is at fault, or a character of it, 'body'."""
    names = [part for part in where if isinstance(part, str) and part not in SHAPES]
    return names[-1]


def _run_rejected(request: Request, error: Exception) -> Response:
    assert isinstance(error, RunRejected)
    fields: dict[str, str] = {}
    for fault in error.faults:
        fields.setdefault(fault.field, f"{echo(str(fault.value))}: {fault.allowed}")
    return answer(request, Trouble(422, "This run cannot start", "Nothing was started.", fields))


def _not_now(request: Request, error: Exception) -> Response:
    assert isinstance(error, NotNow)
    log.warning("refused for now", why=type(error).__name__)
    response = answer(request, Trouble(429, "Not now", str(error)))
    response.headers["Retry-After"] = str(error.retry_seconds)
    return response


def _no_storage(request: Request, error: Exception) -> Response:
    log.error("storage refused", why=str(error))
    return answer(request, NO_STORAGE)


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = WORDS.get(error.status_code)
    phrase = HTTPStatus(error.status_code).phrase
    response = answer(request, known or Trouble(error.status_code, phrase, "Go back and try again."))
    response.headers.update(error.headers or {})
    return response


def _broken(request: Request, error: Exception) -> Response:
    """Made outside of all middleware, so it brings its own headers. uvicorn writes the trace into the log, with the id."""
    response = answer(request, BROKEN)
    response.headers["X-Request-ID"] = request_id(request.scope)
    return with_security_headers(response, request.app.state.site.settings.frame_ancestors)
