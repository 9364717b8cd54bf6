"""An experiment in its lesson: the button with what goes along with it, and the visitor's own run or the recorded one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup
from starlette.requests import Request

from app.course.model import Experiment
from app.runs.timing import PURPOSE
from app.web import contexts, run_contexts
from app.web.deps import Site, Visitor
from app.web.experiments import command
from app.web.render import fragment
from app.web.run_forms import Place, page_values
from app.web.run_notes import note_of, shown
from app.web.run_views import Seen, Setting, element, latest_at, place_view, recorded_view


def experiment_view(
    request: Request, site: Site, who: Visitor, place: Place, slip: contexts.RunSlip | None = None
) -> contexts.Experiment:
    """The whole block, at the values of the page's address. `slip` is a message to stand beside its button."""
    experiment = place.experiment
    values = page_values(place, request.query_params.multi_items())
    seen = latest_at(site, who, place) if site.settings.runs else None
    message = slip.message if slip is not None and slip.experiment == experiment.id else ""
    button = button_of(site, place, seen, values, request.url.query)
    how = Setting(button=button, recorded=recorded_view(experiment), refusal=message)
    return contexts.Experiment(
        title=experiment.title,
        text_html=Markup(experiment.text_html),
        place=element(place),
        run=fragment(site.environment, place_view(seen, place, who, how)),
        runs=site.settings.runs,
        commands=commands(experiment),
        size=experiment.P,
        timed=experiment.purpose == PURPOSE,
    )


def commands(experiment: Experiment) -> tuple[str, ...]:
    """What does the same in a shell."""
    if experiment.purpose == PURPOSE:
        return (f"python -m app.runs.timing {experiment.P}",)
    return tuple(command(experiment.P, run) for run in experiment.strategies)


def button_of(
    site: Site, place: Place | None, seen: Seen | None, values: Mapping[str, Any], query: str = ""
) -> run_contexts.Button | None:
    """None where there is nothing to press: runs are off, or the page belongs to no experiment."""
    if place is None or not site.settings.runs:
        return None
    return run_contexts.Button(
        experiment=place.key,
        action="/runs" + (f"?{query}" if query else ""),
        values=tuple((name, str(value)) for name, value in values.items()),
        note=note_of(site, place, values, shown(place, seen)),
        note_address=f"/lessons/{place.lesson.slug}/experiments/{place.experiment.id}/note",
    )
