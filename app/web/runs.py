"""POST /runs starts a real job; its page, its status that polls itself to the end, cancelling, and what can be taken away."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.errors import BadInput, NotNow, RunRejected
from app.learners.quotas import Allowance
from app.learners.store import get_or_create_learner
from app.runs import own, queue, store, take_away
from app.web import contexts, run_contexts
from app.web.deps import AllowanceDep, Site, SiteDep, Visitor, VisitorDep, remember
from app.web.error_pages import OTHER_LEARNER, answer
from app.web.lesson_page import show_lesson
from app.web.logs import log
from app.web.render import fragment, is_htmx, render
from app.web.run_forms import OWN_KEYS, Pairs, Place, find_place, lesson_address, page_values, strategies_of, wanted
from app.web.run_places import button_of
from app.web.run_views import (
    Seen,
    Setting,
    element,
    facts,
    latest_at,
    look,
    place_view,
    recorded_view,
    status_view,
    titles,
)
from app.web.run_words import page_lede, page_title, refusal

router = APIRouter()
# A run's address is all it takes to read it: it belongs into no index and no cache.
PRIVATE = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}
TWO_SHAPES = {**PRIVATE, "Vary": "HX-Request"}
LONGEST = 120  # letters of a name in a query
FORGOTTEN = "That run is out of this lesson. Its own address still leads to it."
GOES_ON = "Others wait for the same run, so it goes on for them. You need not do anything."
Of = Annotated[str, Query(max_length=LONGEST)]


async def form_pairs(request: Request) -> list[tuple[str, str]]:
    """A form whose fields depend on what is run. Files are nobody's values."""
    form = await request.form()
    return [(key, value) for key, value in form.multi_items() if isinstance(value, str)]


FormPairs = Annotated[list[tuple[str, str]], Depends(form_pairs)]


@router.post("/runs")
def start_run(
    request: Request, site: SiteDep, who: VisitorDep, allowance: AllowanceDep, pairs: FormPairs
) -> Response:
    """303 to the run's page, or for htmx its place in the page. What may not start is said beside the button."""
    given = dict(pairs)
    place = find_place(site.course, given["experiment"]) if "experiment" in given else None
    try:
        asked = _ask(site, who, allowance, place, pairs)
    except (BadInput, RunRejected, NotNow) as refused:
        return remember(request, _refused(request, site, who, place, refused), who)
    log.info("run asked for", run=asked.run_id, shared=asked.shared)
    if not is_htmx(request):
        return remember(request, RedirectResponse(_page_address(asked.run_id, place), 303, headers=PRIVATE), who)
    known = who.stored()
    seen = look(site, asked.run_id, known, place)
    return remember(request, _placed(request, site, seen, place, known, pairs, Setting(said="", focus=True)), who)


def _ask(site: Site, who: Visitor, allowance: Allowance, place: Place | None, pairs: Pairs) -> queue.Asked:
    given = dict(pairs)
    plain = [(key, value) for key, value in pairs if "." not in key and key not in ("experiment", "again")]
    if "again" in given:
        with site.database.reading() as session:
            spec = store.get(session, given["again"]).spec
    elif place is not None:
        spec = wanted(place, pairs, site.settings.max_world_size)
    elif "strategy" in given:
        spec = strategies_of(plain, site.settings.max_world_size)
    else:
        raise BadInput({"strategy": f"name one, or an experiment; the names are {', '.join(OWN_KEYS)}."})
    with site.database.writing() as session:
        get_or_create_learner(session, who.id, allowance)
        return queue.ask(session, who.id, spec, settings=site.settings, fresh="again" in given)


def _refused(
    request: Request, site: Site, who: Visitor, place: Place | None, refused: BadInput | RunRejected | NotNow
) -> Response:
    status, headers, message = refusal_of(refused, site.settings.max_world_size)
    if place is not None and is_htmx(request):
        target = {"HX-Retarget": f"#{element(place)}-refusal", "HX-Reswap": "innerHTML"}
        return render(request, run_contexts.Refusal(message), status, {**TWO_SHAPES, **headers, **target})
    if place is not None:
        at_lesson = Request({**request.scope, "path": f"/lessons/{place.lesson.slug}"})
        response = show_lesson(at_lesson, site, place.lesson, who, contexts.RunSlip(place.experiment.id, message, status))
        response.headers.update(headers)
        return response
    raise refused


def refusal_of(refused: BadInput | RunRejected | NotNow, limit: int) -> tuple[int, dict[str, str], str]:
    """Status, headers and words of a run that may not start."""
    if isinstance(refused, NotNow):
        return 429, {"Retry-After": str(refused.retry_seconds)}, str(refused)
    if isinstance(refused, RunRejected):
        return 422, {}, refusal(refused, limit)
    return 422, {}, f"{' '.join(f'{text}' for text in refused.errors.values())} Nothing was started."


@router.get("/runs/{run_id}")
def run_page(request: Request, site: SiteDep, who: VisitorDep, run_id: str, of: Of = "") -> Response:
    """All there is about a run, for whoever has its address."""
    place = find_place(site.course, of) if of else None
    seen = look(site, run_id, who)
    run = seen.run
    view = place_view(seen, place, who, Setting(permalink=True))
    names = titles(run, place)
    page = run_contexts.RunPage(
        title=page_title(run.spec, names),
        lede=page_lede(run.spec, names),
        run=fragment(site.environment, view),
        place=element(place),
        facts=facts(run),
        asked=f"{run.asked_at.day} {run.asked_at:%B %Y, %H:%M} UTC",
        run_id=run.id,
        lesson="" if place is None else lesson_address(place, run.spec),
        lesson_title="" if place is None else place.lesson.title,
        refresh=view.status is not None,
        kept_days=site.settings.keep_runs_days,
    )
    return render(request, page, headers=PRIVATE)


@router.get("/runs/{run_id}/status")
def run_status(
    request: Request, site: SiteDep, who: VisitorDep, run_id: str, of: Of = "", said: Of = "", alone: bool = False
) -> Response:
    """The moving part while a run goes on; once it has ended, its whole place with the result. `alone`: on its own page."""
    place = find_place(site.course, of) if of else None
    seen = look(site, run_id, who, None if alone else place)
    if not seen.run.state.is_final:
        return render(request, run_contexts.RunStatus(status_view(seen, place, said, alone=alone)), headers=PRIVATE)
    how = Setting(said=said, fresh=True, permalink=alone or place is None)
    target = {"HX-Retarget": f"#{element(place)}", "HX-Reswap": "outerHTML"}
    return _placed(request, site, seen, place, who, request.query_params.multi_items(), how, target)


@router.post("/runs/{run_id}/cancel")
def cancel_run(
    request: Request, site: SiteDep, who: VisitorDep, pairs: FormPairs, run_id: str, of: Of = "", alone: bool = False
) -> Response:
    """Takes a request back. A run that others wait for as well goes on without this learner."""
    place = find_place(site.course, of) if of else None
    with site.database.writing() as session:
        cancelled = queue.cancel(session, run_id, who.id)
    if cancelled is queue.Cancelled.NOT_YOURS:
        return answer(request, OTHER_LEARNER)
    log.info("run cancelled", run=run_id, outcome=cancelled.value)
    if not is_htmx(request):
        return RedirectResponse(_page_address(run_id, place), 303, headers=PRIVATE)
    how = Setting(said="", focus=True, permalink=alone or place is None)
    if cancelled is queue.Cancelled.SHARED and not how.permalink:
        return _without(request, site, place, who, pairs, replace(how, remark=GOES_ON))
    how = replace(how, remark=GOES_ON if cancelled is queue.Cancelled.SHARED else "")
    return _placed(request, site, look(site, run_id, who, None if alone else place), place, who, pairs, how)


@router.post("/runs/{run_id}/forget")
def forget_run(request: Request, site: SiteDep, who: VisitorDep, pairs: FormPairs, run_id: str, of: Of) -> Response:
    """Takes a run that ended without a result out of its lesson. Its own page stays."""
    place = find_place(site.course, of)
    with site.database.writing() as session:
        run, _ = own.spec_of(session, run_id)
        own.forget(session, who.id, run_id)
    if not is_htmx(request):
        return RedirectResponse(lesson_address(place, run), 303, headers=PRIVATE)
    return _without(request, site, place, who, pairs, Setting(said="", focus=True, remark=FORGOTTEN))


@router.get("/runs/{run_id}/script")
def run_script(site: SiteDep, run_id: str) -> Response:
    """The exact run as a Python file."""
    with site.database.reading() as session:
        run = store.get(session, run_id)
    return _download(take_away.script(run), "text/x-python", f"world-size-run-{run.number}.py")


@router.get("/runs/{run_id}/notebook")
def run_notebook(site: SiteDep, run_id: str) -> Response:
    """The exact run as a Jupyter notebook."""
    with site.database.reading() as session:
        run = store.get(session, run_id)
    return _download(take_away.notebook(run), "application/x-ipynb+json", f"world-size-run-{run.number}.ipynb")


def _download(text: str, kind: str, name: str) -> Response:
    return Response(text, media_type=kind, headers={**PRIVATE, "Content-Disposition": f'attachment; filename="{name}"'})


def _without(request: Request, site: Site, place: Place | None, who: Visitor, pairs: Pairs, how: Setting) -> Response:
    """A place after its run has left it: what stood there before comes back."""
    seen = None if place is None else latest_at(site, who, place)
    return _placed(request, site, seen, place, who, pairs, how)


def _placed(
    request: Request, site: Site, seen: Seen | None, place: Place | None, who: Visitor, pairs: Pairs, how: Setting,
    headers: dict[str, str] | None = None,
) -> Response:
    """A place alone, with its button at the values that the figure had when the request was sent."""
    if place is not None and not how.permalink:
        button = button_of(site, place, seen, page_values(place, pairs))
        how = replace(how, button=button, recorded=recorded_view(place.experiment))
    return render(request, place_view(seen, place, who, how), headers={**TWO_SHAPES, **(headers or {})})


def _page_address(run_id: str, place: Place | None) -> str:
    return f"/runs/{run_id}" + ("" if place is None else f"?{urlencode({'of': place.key})}")
