"""GET /healthz: the process answers. GET /readyz: it can also store, shown by writing and reading back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.errors import StorageRefused
from app.web.deps import SiteDep
from app.web.logs import log

router = APIRouter()
FRESH = {"Cache-Control": "no-store"}
HOLDS_SECONDS = 2.0


class Readiness:
    """Whether `look` raises StorageRefused. Looking writes and syncs, and anybody may ask: so one looks at a time, what was
    seen holds for a while, and whoever asks meanwhile hears what was seen before."""

    def __init__(self, look: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._look = look
        self._clock = clock
        self._looking = threading.Lock()
        self._seen: bool | None = None
        self._due = clock()

    def holds(self) -> bool:
        if self._is_due() and self._looking.acquire(blocking=self._seen is None):
            try:
                if self._is_due():
                    self._seen = self._look_now()
                    self._due = self._clock() + HOLDS_SECONDS
            finally:
                self._looking.release()
        return bool(self._seen)

    def _is_due(self) -> bool:
        return self._clock() >= self._due

    def _look_now(self) -> bool:
        try:
            self._look()
        except StorageRefused as error:
            log.error("not ready", why=str(error))  # here and nowhere else: it names folders and servers
            return False
        return True


@router.get("/healthz")
def healthz() -> Response:
    return JSONResponse({"status": "ok"}, headers=FRESH)


@router.get("/readyz")
def readyz(request: Request, site: SiteDep) -> Response:
    """503 while answers cannot be kept; the log says why. `note` is what the operator should know all the same."""
    readiness: Readiness = request.app.state.readiness
    if not readiness.holds():
        return JSONResponse({"status": "not ready", "storage": "Nothing can be stored; the log says why."}, 503, headers=FRESH)
    return JSONResponse({"status": "ready", "note": site.database.note, "runs": site.settings.runs}, headers=FRESH)
