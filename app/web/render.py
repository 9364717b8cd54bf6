"""The Jinja environment, the filters that round and name numbers, and `render`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from app.web import contexts
from app.web.static import Statics

TEMPLATE_DIR = Path(__file__).resolve().parent.parent.parent / "templates"
THEME_COOKIE = "theme"
THEMES = ("light", "dark")


def thousands(number: int | float | Fraction) -> str:
    """A whole number with commas: 1,920. One that is not whole keeps up to three digits: 10.667, 1.5."""
    if number == int(number):
        return f"{int(number):,}"
    return f"{float(number):,.3f}".rstrip("0").rstrip(".")


def byte_count(number: int | float | Fraction) -> str:
    """Bytes with their unit: 1,920 B. Never rounded to KB: the course counts single bytes."""
    return f"{thousands(number)} B"


def counted(number: int, noun: str, plural: str = "") -> str:
    """1 lesson, 2 lessons."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def make_environment(statics: Statics, folder: Path = TEMPLATE_DIR) -> jinja2.Environment:
    """A name that a template does not have is an error, never an empty string."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False, auto_reload=False,
    )
    environment.filters.update(thousands=thousands, byte_count=byte_count, counted=counted)
    environment.globals["static"] = statics.url
    return environment


def shell(request: Request) -> contexts.Shell:
    """What every page has around it, read from the request."""
    theme = request.cookies.get(THEME_COOKIE, "")
    path = request.url.path
    here = f"{path}?{request.url.query}" if request.url.query else path
    return contexts.Shell(theme if theme in THEMES else "", path, here, request.app.state.site.settings.runs)


def fragment(environment: jinja2.Environment, context: contexts.Context) -> Markup:
    """A context's template as HTML that is set into a page."""
    return Markup(environment.get_template(context.template).render(variables(context)))


def render(
    request: Request, context: contexts.Context, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A context's template as an answer. What shows a learner's own state is for no cache but the browser's own."""
    environment: jinja2.Environment = request.app.state.site.environment
    html = environment.get_template(context.template).render(variables(context), shell=shell(request))
    return HTMLResponse(html, status, headers={"Cache-Control": "private, no-cache", **(headers or {})})


def variables(context: contexts.Context) -> dict[str, Any]:
    """The fields of a context by name; nested dataclasses stay what they are."""
    return {field.name: getattr(context, field.name) for field in dataclasses.fields(type(context))}


def is_htmx(request: Request) -> bool:
    """Whether htmx asks for a fragment. After Back it asks for the whole page."""
    headers = request.headers
    return headers.get("hx-request") == "true" and headers.get("hx-history-restore-request") != "true"


def address(path: str, query: str = "", anchor: str = "") -> str:
    """A local address; `query` is already encoded."""
    return path + (f"?{query}" if query else "") + (f"#{quote(anchor)}" if anchor else "")
