"""GET /me: what a learner has done, to read, to take away as JSON, and to delete."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Form
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.learners import store
from app.runs import own, queue
from app.runs.own import Entry
from app.runs.store import State
from app.web import contexts
from app.web.deps import Site, SiteDep, Visitor, VisitorDep, forget
from app.web.guesses import Kept
from app.web.render import render
from app.web.run_views import plain_titles
from app.web.run_words import page_title, setting
from app.web.standing import Past, past, standing

router = APIRouter()
NOT_STORED = {"Cache-Control": "no-store"}
MOST_RUNS = 20  # listed; the file to take away has all
OUTCOMES = {
    State.QUEUED: "waits for its turn",
    State.RUNNING: "is running",
    State.DONE: "measured",
    State.FAILED: "no result",
    State.TIMED_OUT: "out of time",
    State.CANCELLED: "cancelled",
}


class DeleteForm(BaseModel):
    model_config = ConfigDict(extra="forbid")
    confirm: str = Field("", max_length=10)


@router.get("/me")
def me(request: Request, site: SiteDep, who: VisitorDep) -> Response:
    return render(request, _page(site, who), headers=NOT_STORED)


@router.get("/me/export")
def export(site: SiteDep, who: VisitorDep) -> Response:
    """Everything kept under this browser's id, as a file."""
    with site.database.reading() as session:
        kept = store.export(session, who.id) | {"runs": own.export(session, who.id)}
    disposition = {"Content-Disposition": 'attachment; filename="world-size-progress.json"'}
    return Response(json.dumps(kept, indent=2), media_type="application/json", headers=NOT_STORED | disposition)


@router.post("/me/delete")
def delete(request: Request, site: SiteDep, who: VisitorDep, form: Annotated[DeleteForm, Form()]) -> Response:
    """Only with the tick. Afterwards the page says that nothing is kept, and the cookie is gone."""
    if form.confirm != "yes":
        return render(request, _page(site, who, unconfirmed=True), 422, NOT_STORED)
    if who.known:
        with site.database.erasing() as session:
            queue.leave(session, who.id)
            store.delete(session, who.id)
    return forget(request, RedirectResponse("/me", 303, headers=NOT_STORED))


def _page(site: Site, who: Visitor, *, unconfirmed: bool = False) -> contexts.Me:
    before = past(site, who)
    guessed = any(Kept.read(site, who, lesson).answers for lesson in site.course.lessons)
    rows = tuple(_row(site, slug, before) for slug in (lesson.slug for lesson in site.course.lessons))
    runs = _runs(site, who)
    return contexts.Me(
        rows,
        runs=tuple(map(_run_row, runs[:MOST_RUNS])),
        all_runs=len(runs),
        known=bool(before.attempts or before.visits or runs) or guessed,
        unconfirmed=unconfirmed,
    )


def _runs(site: Site, who: Visitor) -> list[Entry]:
    if not who.known:
        return []
    with site.database.reading() as session:
        return own.history(session, who.id)


def _run_row(run: Entry) -> contexts.RunRow:
    asked = f"{run.asked_at.day} {run.asked_at:%B %Y, %H:%M} UTC"
    if run.spec is None:
        return contexts.RunRow(run.id, "A run of another version", "", OUTCOMES[run.state], asked)
    title = page_title(run.spec, plain_titles(run.spec))
    return contexts.RunRow(run.id, title, setting(run.spec), OUTCOMES[run.state], asked)


def _row(site: Site, slug: str, before: Past) -> contexts.ProgressRow:
    lesson = site.course.lesson(slug)
    assert lesson is not None
    here = standing(lesson, before)
    tries = len(before.of(slug).attempts)
    return contexts.ProgressRow(slug, lesson.title, f"{sum(here.sections)} of {len(here.sections)}",
                                f"{here.right} of {here.questions}", f"{tries:,}")
