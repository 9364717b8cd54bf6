"""GET /lessons/{slug}: a lesson with the learner's state set into it, and the note that a section's end was reached."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.course.model import Lesson
from app.errors import NotFound
from app.learners import store
from app.web.deps import AllowanceDep, LessonDep, SiteDep, VisitorDep, remember
from app.web.lesson_page import rail_view, show_lesson
from app.web.render import address, is_htmx, render
from app.web.standing import past

router = APIRouter()


class VisitForm(BaseModel):
    model_config = ConfigDict(extra="forbid")
    section: str


@router.get("/lessons/{slug}")
def lesson_page(request: Request, site: SiteDep, lesson: LessonDep, who: VisitorDep) -> Response:
    """The cookie is set here and not at the first answer: two answers at once would otherwise make two learners."""
    return remember(request, show_lesson(request, site, lesson, who), who)


@router.post("/lessons/{slug}/visits")
def section_reached(
    request: Request, site: SiteDep, lesson: LessonDep, who: VisitorDep, allowance: AllowanceDep,
    form: Annotated[VisitForm, Form()],
) -> Response:
    if lesson.section(form.section) is None:
        raise NotFound(form.section)
    with site.database.writing() as session:
        store.mark_visited(session, who.id, lesson.slug, form.section, allowance)
    if not is_htmx(request):
        there = address(f"/lessons/{lesson.slug}", request.url.query, _section_after(lesson, form.section))
        return remember(request, RedirectResponse(there, 303), who)
    rail = rail_view(site, lesson, past(site, who.stored()))
    return remember(request, render(request, rail), who)


def _section_after(lesson: Lesson, slug: str) -> str:
    """Where a reader without a script goes on; after the last section, its beginning."""
    slugs = [section.slug for section in lesson.sections]
    return slugs[min(slugs.index(slug) + 1, len(slugs) - 1)]
