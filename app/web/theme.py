"""POST /theme: light, dark, or as the system says; kept in a cookie, and back to the page one came from."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Form
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.web.deps import COOKIE_SECONDS
from app.web.render import THEME_COOKIE

router = APIRouter()


class ThemeForm(BaseModel):
    model_config = ConfigDict(extra="forbid")
    theme: Literal["light", "dark", "system"]
    next: str = "/"


@router.post("/theme")
def choose_theme(request: Request, form: Annotated[ThemeForm, Form()]) -> Response:
    response = RedirectResponse(local_address(form.next), 303)
    if form.theme == "system":
        response.delete_cookie(THEME_COOKIE, samesite="lax")
    else:
        response.set_cookie(THEME_COOKIE, form.theme, max_age=COOKIE_SECONDS, httponly=True, samesite="lax",
                            secure=request.url.scheme == "https")
    return response


def local_address(address: str) -> str:
    """The address if it stays on this site, else the map. `//host` and `/\\host` lead elsewhere; control letters go nowhere."""
    stays = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if stays else "/"
