"""Every route of the application, with an address for each: a new route that these tests cannot reach fails them."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import FastAPI
from fastapi.routing import APIRoute

from app.main import ROUTERS

EXAMPLES = {
    "slug": "split-three-ways",
    "question_id": "eight-gpus",
    "prediction_id": "most-traffic",
    "experiment_id": "three-cuts",
    "name": "volume",
    "strategy": "data_parallel",
    "run_id": "no-such-run",
    "path": "app.css",
}


def addresses(app: FastAPI) -> Iterator[tuple[str, str]]:
    """(method, address) of every route; HEAD and OPTIONS are answered by middleware."""
    for path, methods in _paths(app):
        for method in methods:
            yield method, path.replace(":path", "").format(**EXAMPLES)


def _paths(app: FastAPI) -> Iterator[tuple[str, list[str]]]:
    """The routers as main lists them, and what it adds itself."""
    for route in [*(route for room in ROUTERS for route in room.router.routes), *app.routes]:
        if isinstance(route, APIRoute):
            yield route.path, sorted(route.methods - {"HEAD", "OPTIONS"})
