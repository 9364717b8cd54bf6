"""An experiment in its lesson: the button with what goes along with it, and the visitor's own run or the recorded one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup
from starlette.requests import Request

from app.errors import RunRejected
from app.runs import queue
from app.web import contexts, run_contexts
from app.web import run_words as words
from app.web.deps import Site, Visitor
from app.web.experiments import command
from app.web.render import fragment
from app.web.run_forms import Place, at_values, page_values, possible
from app.web.run_views import Setting, element, latest_at, place_view, recorded_view

ABOUT_SECONDS = "It takes a few seconds."


def experiment_view(
    request: Request, site: Site, who: Visitor, place: Place, slip: contexts.RunSlip | None = None
) -> contexts.Experiment:
    """The whole block, at the values of the page's address. `slip` is a message to stand beside its button."""
    experiment = place.experiment
    values = page_values(place, request.query_params.multi_items())
    button = button_of(site, place, values, request.url.query)
    message = slip.message if slip is not None and slip.experiment == experiment.id else ""
    how = Setting(button=button, recorded=recorded_view(experiment), refusal=message)
    seen = latest_at(site, who, place) if site.settings.runs else None
    return contexts.Experiment(
        title=experiment.title,
        text_html=Markup(experiment.text_html),
        place=element(place),
        run=fragment(site.environment, place_view(seen, place, who, how)),
        runs=site.settings.runs,
        commands=tuple(command(experiment.P, run) for run in experiment.strategies),
        size=experiment.P,
    )


def button_of(
    site: Site, place: Place | None, values: Mapping[str, Any] | None = None, query: str = ""
) -> run_contexts.Button | None:
    """None where there is nothing to press: runs are off, or the page belongs to no experiment."""
    if place is None or not site.settings.runs:
        return None
    figure = place.experiment.figure
    return run_contexts.Button(
        experiment=place.key,
        action="/runs" + (f"?{query}" if query else ""),
        include="" if figure is None else f"#{figure}-form",
        values=tuple((name, str(value)) for name, value in (values or {}).items()),
        note=_note(site, place, values or {}),
    )


def _note(site: Site, place: Place, values: Mapping[str, Any]) -> str:
    """What pressing does, and what stands in its way just now."""
    limit = site.settings.max_world_size
    with site.database.reading() as session:
        now = datetime.now(UTC)
        away = queue.worker_away_since(session, now)
    if away is not None:
        return f"{words.worker_away(away, now)} A run would wait until one is there."
    size, experiments = at_values(place.experiment, values)
    try:
        possible(size, experiments, limit)
    except RunRejected as rejected:
        return words.refusal(rejected).replace("Nothing was started.", "Other values can run.")
    if place.experiment.figure is None:
        return f"{words.numeral(size).capitalize()} real processes on this server, one for each GPU. {ABOUT_SECONDS}"
    return f"One real process for each GPU, at the values of the figure; here at most {limit}. {ABOUT_SECONDS}"
