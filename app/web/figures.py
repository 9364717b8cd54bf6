"""GET /figures/{name}: one figure's drawing at the values of the query; and the figure as a lesson's page embeds it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import jinja2
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.errors import FigureNotFound
from app.figures import FIGURES
from app.figures.engine import Figure, View, figure_state, read_query, start_values, view
from app.figures.inputs import Field, Inputs, Reading, Value
from app.web import contexts
from app.web.deps import Site
from app.web.render import fragment

KEPT_FRAGMENTS = 512  # about 20 KB each
CACHE_SECONDS = 300
HEADERS = {"Cache-Control": f"public, max-age={CACHE_SECONDS}", "Vary": "HX-Request"}
router = APIRouter()


@dataclass(frozen=True)
class FigureEmbed(contexts.Context):
    """A figure in a lesson's page. `others` are the pairs of the address that are not its own; a form must not lose them."""

    template: ClassVar[str] = "figures/_figure.html"
    figure: Figure
    number: int  # within the lesson, from 1
    values: Mapping[str, Value]
    view: View
    messages: Mapping[str, str]  # by field with a place for one
    message: str  # about everything else
    others: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class FigureFragment(contexts.Context):
    """What htmx swaps after a good value: the drawing, and beside it the live text, the table and cleared messages."""

    template: ClassVar[str] = "figures/_fragment.html"
    figure: Figure
    fields: tuple[str, ...]
    view: View


@dataclass(frozen=True)
class FigureRefusal(contexts.Context):
    """What htmx swaps after a bad value: messages. The drawing stays as it is."""

    template: ClassVar[str] = "figures/_refusal.html"
    figure: Figure
    messages: Mapping[str, str]
    message: str


@dataclass(frozen=True)
class Rendered:
    """A fragment as it goes out, and its validator."""

    body: bytes
    etag: str


@router.get("/figures/{name}")
async def show_figure(request: Request, name: str) -> Response:
    """Always a fragment. Not `def`: a thread would cost more than the few hundred microseconds that this takes."""
    figure = FIGURES.get(name)
    if figure is None:
        raise FigureNotFound(name)
    environment: jinja2.Environment = request.app.state.site.environment
    reading = read_query(figure, request.query_params.multi_items())
    if reading.errors:
        messages, message = _messages(figure, reading.errors, _still_shown(reading))
        html = fragment(environment, FigureRefusal(figure, messages, message))
        return Response(html, 422, {"Cache-Control": "no-store", "Vary": "HX-Request", "HX-Reswap": "none"}, "text/html")
    rendered = _rendered(environment, figure, reading.inputs)
    headers = {**HEADERS, "ETag": rendered.etag}
    if _is_current(request.headers.get("if-none-match", ""), rendered.etag):
        return Response(status_code=304, headers=headers)
    return Response(rendered.body, 200, headers, "text/html")


def embedded(request: Request, slug: str, name: str, params: Mapping[str, str]) -> str:
    """A figure of a lesson at the values of the page's address. `params` are the lesson's own starting values."""
    site: Site = request.app.state.site
    lesson = site.course.lesson(slug)
    assert lesson is not None
    figure = FIGURES[name]
    pairs = request.query_params.multi_items()
    prefix = f"{name}."
    state = figure_state(figure, pairs, prefix, start_values(figure, params))
    values = dict(state.inputs.values)
    shown = {name: f"The figure shows {name} = {value}." for name, value in values.items()}
    messages, message = _messages(figure, state.errors, shown)
    return fragment(site.environment, FigureEmbed(
        figure=figure, number=lesson.figures.index(name) + 1, values=values, view=state.view, messages=messages,
        message=message, others=tuple((key, value) for key, value in pairs if not key.startswith(prefix)),
    ))


def has_errors(request: Request, names: Sequence[str]) -> bool:
    """Whether the address of a page holds a value that one of its figures does not take."""
    pairs = request.query_params.multi_items()
    return any(read_query(FIGURES[name], pairs, f"{name}.").errors for name in names)


@lru_cache(maxsize=KEPT_FRAGMENTS)
def _rendered(environment: jinja2.Environment, figure: Figure, inputs: Inputs) -> Rendered:
    fields = tuple(field.name for field in figure.fields if isinstance(field, Field))
    body = fragment(environment, FigureFragment(figure, fields, view(figure, inputs))).encode()
    return Rendered(body, f'"{hashlib.sha256(body).hexdigest()[:20]}"')


def _messages(figure: Figure, errors: Mapping[str, str], shown: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Messages by field, each with what the figure shows instead, and one text about all that has no place of its own."""
    places = [field.name for field in figure.fields if isinstance(field, Field)]
    beside = {name: f"{errors[name]} {shown[name]}" for name in places if name in errors}
    return beside, " ".join(text for name, text in errors.items() if name not in places)


def _still_shown(reading: Reading) -> dict[str, str]:
    """What the drawing on the page keeps for each field, as far as its form tells."""
    return {name: f"The figure still shows {name} = {value}." if name in reading.kept else "The figure keeps its last values."
            for name, value in reading.inputs.values}


def _is_current(if_none_match: str, etag: str) -> bool:
    """Whether the browser already has this very fragment."""
    known = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
    return etag in known or "*" in known

