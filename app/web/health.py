"""GET /healthz: the process answers. GET /readyz: it can also store, shown by writing and reading back."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from app.db import check_readiness
from app.errors import StorageRefused
from app.web.deps import SiteDep

router = APIRouter()
FRESH = {"Cache-Control": "no-store"}


@router.get("/healthz")
def healthz() -> Response:
    return JSONResponse({"status": "ok"}, headers=FRESH)


@router.get("/readyz")
def readyz(site: SiteDep) -> Response:
    """503 with the reason in words while answers cannot be kept. `note` is what the operator should know all the same."""
    try:
        check_readiness(site.database)
    except StorageRefused as error:
        return JSONResponse({"status": "not ready", "storage": str(error)}, 503, headers=FRESH)
    return JSONResponse({"status": "ready", "note": site.database.note, "runs": site.settings.runs}, headers=FRESH)
