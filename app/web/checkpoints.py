"""POST /lessons/{slug}/checkpoints/{id}: an answer is graded and kept. GET: the question alone, for htmx."""

from __future__ import annotations

import secrets
from typing import Annotated

from fastapi import APIRouter, Form
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.course.grade import grade
from app.course.model import Lesson, Question
from app.errors import NotNow, QuestionNotFound
from app.learners import store
from app.web import contexts
from app.web.deps import AllowanceDep, LessonDep, SiteDep, VisitorDep, remember
from app.web.lesson_page import show_refusal, show_slip
from app.web.query import without
from app.web.questions import LAST_VARIANT, TRY_PREFIX, feedback_on, not_now, question_view, untried_view
from app.web.render import address, is_htmx, render
from app.web.standing import past

router = APIRouter()


class AnswerForm(BaseModel):
    """`submission` comes with the form: the same form sent twice is one try."""

    model_config = ConfigDict(extra="forbid")
    answer: str = Field("", max_length=200)
    variant: int = Field(0, ge=0, le=LAST_VARIANT)
    submission: str = Field("", max_length=64)


@router.post("/lessons/{slug}/checkpoints/{question_id}")
def answer_question(
    request: Request, site: SiteDep, lesson: LessonDep, question_id: str, who: VisitorDep, allowance: AllowanceDep,
    form: Annotated[AnswerForm, Form()],
) -> Response:
    """Right or wrong is kept. An answer that cannot be read, or not be kept for now, gets words, costs no try and stays."""
    question = _question(lesson, question_id)
    verdict = grade(question, question.variant(form.variant, who.seed), form.answer)

    def untried(feedback: contexts.Feedback) -> contexts.Question:
        attempts = past(site, who).of(lesson.slug).attempts
        return untried_view(lesson, question, who, attempts, request.query_params, answer=form.answer, variant=form.variant,
                            feedback=feedback)

    if verdict.status == "unclear":
        return show_slip(request, site, lesson, who, untried(feedback_on(verdict)))
    try:
        with site.database.writing() as session:
            store.record_attempt(session, who.id, lesson.slug, question.id, form.variant, form.answer.strip(), verdict.status,
                                 form.submission or secrets.token_urlsafe(12), allowance)
    except NotNow as refused:
        return show_refusal(request, site, lesson, who, untried(not_now(str(refused))), refused)
    if not is_htmx(request):
        query = without(request.query_params, TRY_PREFIX + question.id)
        back = address(f"/lessons/{lesson.slug}", query, f"question-{question.id}")
        return remember(request, RedirectResponse(back, 303), who)
    attempts = past(site, who.stored()).of(lesson.slug).attempts
    view = question_view(lesson, question, who, attempts, request.query_params, variant=form.variant, fresh=True)
    return remember(request, render(request, view), who)


@router.get("/lessons/{slug}/checkpoints/{question_id}")
def question_fragment(request: Request, site: SiteDep, lesson: LessonDep, question_id: str, who: VisitorDep) -> Response:
    """The question alone, for htmx; anybody else is led to its place in the lesson."""
    question = _question(lesson, question_id)
    if not is_htmx(request):
        return RedirectResponse(address(f"/lessons/{lesson.slug}", request.url.query, f"question-{question.id}"), 303,
                                headers={"Vary": "HX-Request"})
    attempts = past(site, who).of(lesson.slug).attempts
    view = question_view(lesson, question, who, attempts, request.query_params, fresh=True)
    return render(request, view, headers={"Vary": "HX-Request"})


def _question(lesson: Lesson, question_id: str) -> Question:
    found = lesson.find_question(question_id)
    if found is None:
        raise QuestionNotFound(question_id)
    return found
