"""create_app: the web process, as a table of contents."""

from __future__ import annotations

from functools import partial

from fastapi import FastAPI
from itsdangerous import Signer
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.course.load import load_course
from app.db import check_readiness, open_database
from app.figures import FIGURES
from app.migrations import migrate
from app.private_files import make_private_folder, read_or_make_secret
from app.settings import Settings
from app.web import (
    api,
    api_runs,
    checkpoints,
    course_map,
    figures,
    health,
    learner,
    ledger,
    lessons,
    metrics,
    predictions,
    run_notes,
    runs,
    theme,
)
from app.web.deps import Site
from app.web.error_pages import OTHER_NAME, OTHER_SITE, TOO_LARGE, TOO_LONG, Refusal, add_error_pages
from app.web.logs import RequestLog
from app.web.metrics import CountRequests
from app.web.render import make_environment
from app.web.security import AddressLimit, BodyLimit, HeadAsGet, KnownHosts, SameOrigin, SecurityHeaders
from app.web.static import SMALLEST_COMPRESSED, load_statics

COMPRESSION_LEVEL = 5
ROUTERS = (course_map, lessons, figures, checkpoints, predictions, runs, run_notes, ledger, learner, theme, api, api_runs,
           health, metrics)


def create_app(settings: Settings, *, docs: bool = False) -> FastAPI:
    """Opens everything once and refuses to start on a fault. `docs` serves /openapi.json.

    There is no /docs page: it would need scripts from another site, which the security policy forbids.
    """
    app = FastAPI(title="World Size", middleware=middleware(settings), docs_url=None, redoc_url=None,
                  openapi_url="/openapi.json" if docs else None)
    app.state.site = open_site(settings)
    app.state.readiness = health.Readiness(partial(check_readiness, app.state.site.database))
    add_error_pages(app)
    for room in ROUTERS:
        app.include_router(room.router)
    app.add_api_route("/static/{path:path}", static_file, include_in_schema=False)
    return app


def open_site(settings: Settings) -> Site:
    """Lessons checked, tables brought to the present, files in memory, the secret at hand."""
    course = load_course(settings.course_dirs, {figure.name: figure.field_names for figure in FIGURES.values()})
    make_private_folder(settings.data_dir)
    database = open_database(settings.storage_url)
    migrate(database)
    statics = load_statics()
    signer = Signer(read_or_make_secret(settings.signing_secret_file), salt="learner")
    return Site(settings, course, database, statics, make_environment(statics), signer)


def middleware(settings: Settings) -> list[Middleware]:
    """Outermost first. X-Forwarded headers count only when they come from a proxy that the settings name."""
    proxies = [str(network) for network in settings.trusted_proxies]
    return [
        Middleware(RequestLog, trusted_proxies=settings.trusted_proxies),
        *([Middleware(ProxyHeadersMiddleware, trusted_hosts=proxies)] if proxies else []),
        Middleware(CountRequests),
        Middleware(SecurityHeaders, frame_ancestors=settings.frame_ancestors),
        Middleware(HeadAsGet),
        Middleware(GZipMiddleware, minimum_size=SMALLEST_COMPRESSED, compresslevel=COMPRESSION_LEVEL),
        Middleware(KnownHosts, refusal=Refusal(OTHER_NAME), hosts=settings.known_hosts),
        Middleware(AddressLimit, refusal=Refusal(TOO_LONG)),
        Middleware(BodyLimit, refusal=Refusal(TOO_LARGE)),
        Middleware(SameOrigin, refusal=Refusal(OTHER_SITE)),
    ]


async def static_file(request: Request, path: str) -> Response:
    response: Response = request.app.state.site.statics.response(request, path)
    return response
