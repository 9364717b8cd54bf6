"""POST /lessons/{slug}/predictions/{id}: the guess made before anything is shown, kept once."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.errors import NotNow
from app.learners import store
from app.web.deps import AllowanceDep, LessonDep, SiteDep, VisitorDep, remember
from app.web.guesses import Kept, find_prediction, prediction_view
from app.web.lesson_page import show_refusal, show_slip
from app.web.render import address, is_htmx, render

router = APIRouter()


class GuessForm(BaseModel):
    model_config = ConfigDict(extra="forbid")
    answer: str = Field("", max_length=200)


@router.post("/lessons/{slug}/predictions/{prediction_id}")
def keep_guess(
    request: Request, site: SiteDep, lesson: LessonDep, prediction_id: str, who: VisitorDep, allowance: AllowanceDep,
    form: Annotated[GuessForm, Form()],
) -> Response:
    """The first guess is the one that counts; sending another changes nothing."""
    prediction = find_prediction(lesson, prediction_id)
    if prediction.option(form.answer) is None:
        kept = Kept.read(site, who, lesson)
        return show_slip(request, site, lesson, who, prediction_view(request, lesson, prediction_id, kept, missing=True))
    try:
        with site.database.writing() as session:
            guess = store.record_prediction(session, who.id, lesson.slug, prediction.id, form.answer, allowance)
    except NotNow as refused:
        view = prediction_view(request, lesson, prediction_id, Kept({}), later=str(refused), chosen=form.answer)
        return show_refusal(request, site, lesson, who, view, refused)
    if not is_htmx(request):
        there = address(f"/lessons/{lesson.slug}", request.url.query, f"prediction-{prediction.id}")
        return remember(request, RedirectResponse(there, 303), who)
    kept = Kept({prediction.id: guess.answer})
    return remember(request, render(request, prediction_view(request, lesson, prediction_id, kept, fresh=True)), who)
