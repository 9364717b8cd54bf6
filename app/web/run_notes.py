"""The note beside the button: what pressing does at the figure's values, and when what stands below belongs to other values.

It follows the figure by a request of its own: the figure's fragments are public and cached, and know nothing of runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from app.errors import BadInput, RunRejected
from app.figures import FIGURES
from app.figures.inputs import Field
from app.runs import own, store, timing
from app.runs.sharing import LeftOut, runnable
from app.runs.store import State
from app.web import run_words as words
from app.web.deps import Site, SiteDep
from app.web.render import render
from app.web.run_contexts import Note, RunNote
from app.web.run_forms import OF_FIGURES, Place, at_values, find_place, form_values, possible, same_kind
from app.web.run_views import Seen, element
from kernels import spec
from kernels.spec import RunSpec

router = APIRouter()
ABOUT_SECONDS = "It takes a few seconds."
ABOUT_TIMING = f"{len(timing.SIZES)} sizes, {timing.CALLS} calls of each: it takes about ten seconds."
BACK = "The figure stands again at the values of what is shown below."
RECORDED = "recorded"
Word = Annotated[str, Query(max_length=60)]


@dataclass(frozen=True)
class Shown:
    """What stands below the button: the key by which the page names it, how it came about, and what was asked for."""

    key: str
    lead: str
    run: RunSpec


def shown(place: Place, seen: Seen | None) -> Shown | None:
    """The visitor's own run where it has ended, else the recorded one."""
    if seen is not None and seen.run.state.is_final:
        return _own(seen.run.id, seen.run.spec, seen.run.state)
    experiment = place.experiment
    recorded = tuple(run for run in experiment.strategies if experiment.recorded_report(run) is not None)
    return Shown(RECORDED, "Recorded", RunSpec(experiment.P, recorded)) if recorded else None


def _own(run_id: str, run: RunSpec, state: State) -> Shown:
    return Shown(run_id, "Measured" if state is State.DONE else "Tried", run)


def note_of(site: Site, place: Place, values: Mapping[str, Any], below: Shown | None) -> Note:
    """What is said at these values."""
    size, experiments = at_values(place.experiment, values)
    apart = "" if below is None or place.experiment.figure is None else _apart(below, size, experiments)
    about, text = _standing(site, place, size, experiments, bool(apart))
    return Note(apart, text, " ".join(filter(None, ("apart" if apart else "", about))), "" if below is None else below.key)


def _apart(below: Shown, size: int, experiments: Sequence[spec.Experiment]) -> str:
    """'Measured at P = 4, H = 4. The figure now stands at P = 8.'"""
    pairs = [(ran, now) for ran in below.run.experiments for now in experiments if same_kind(ran, now)]
    if not pairs:
        return ""
    ran, now = pairs[0]
    before, after = _numbers(below.run.P, ran), _numbers(size, now)
    changes = [f"{name}{words.SPACE}={words.SPACE}{after[name]}" for name in after if after[name] != before[name]]
    fed_before, fed_after = (len({(one.T, one.m) for one in side}) > 1 for side in zip(*pairs, strict=True))
    if fed_before != fed_after:
        changes.append("equal batches" if fed_after else "batches as taught")
    if not changes:
        return ""
    return f"{below.lead} at {words.setting(below.run)}. The figure now stands at {words.listed(changes)}."


def _numbers(size: int, one: spec.Experiment) -> dict[str, spec.OptionValue]:
    options = {field: one.options.get(option, 0) for field, option in OF_FIGURES.items()}
    return {"P": size, "L": one.L, "H": one.H, "T": one.T, "m": one.m, **options}


def _standing(site: Site, place: Place, size: int, experiments: Sequence[spec.Experiment], apart: bool) -> tuple[str, str]:
    """What stands in the way of pressing, in a word and in a sentence; or what pressing does."""
    limit = site.settings.max_world_size
    if size > limit:
        return "cannot", words.over_the_cap(size, limit)
    try:
        possible(size, experiments, limit)
    except RunRejected as rejected:
        first = RunRejected(rejected.faults[:1])  # whoever presses all the same reads all of them
        return "cannot", words.refusal(first, limit).replace("Nothing was started.", "Other values can run.")
    with site.database.reading() as session:
        now = datetime.now(UTC)
        away = store.worker_away_since(session, now)
    if away is not None:
        return "away", f"{words.worker_away(away, now)} A run would wait until one is there."
    if missing := runnable(size, experiments)[1]:
        return "left-out", _missing(place, missing, "there" if apart else "at these values")
    if apart:
        return "", "The button measures it there."
    if place.experiment.figure is None:
        return "", f"{words.numeral(size).capitalize()} real processes on this server, one for each GPU. {ABOUT_SECONDS}"
    if place.experiment.purpose == timing.PURPOSE:
        return "", f"One real process for each GPU of the figure. {ABOUT_TIMING}"
    most = f"; here at most {limit}" if limit < _most_of(place.experiment.figure) else ""
    return "", f"One real process for each GPU, at the values of the figure{most}. {ABOUT_SECONDS}"


def _most_of(figure: str) -> int:
    """GPUs, as far as a figure goes; 0 where it has no say in them."""
    return next((field.maximum for field in FIGURES[figure].fields if isinstance(field, Field) and field.name == "P"), 0)


def _missing(place: Place, missing: LeftOut, where: str) -> str:
    names = words.listed([place.experiment.title_of(place.taught(one) or one) for one, _ in missing])
    _, reasons = missing[0]  # the others stand in the table of the result
    return f"{names} cannot run {where}: {reasons[0].allowed}. The others can."


def _news(note: Note, before: str) -> str:
    """What a reader who hears the page is told: what is new since `before`, not every value on the way."""
    was, now = set(before.split()), set(note.about.split())
    if now - was:
        return f"{note.apart} {note.text}".strip()
    return BACK if "apart" in was - now else ""


@router.get("/lessons/{slug}/experiments/{experiment_id}/note")
def run_note(
    request: Request, site: SiteDep, slug: str, experiment_id: str, shown: Word = "", about: Word = ""
) -> Response:
    """The note at the values of the query. Values that the figure refuses change nothing, as in the figure itself."""
    place = find_place(site.course, f"{slug}/{experiment_id}")
    try:
        values = form_values(place, request.query_params.multi_items())
    except BadInput:
        return Response(status_code=204)
    note = note_of(site, place, values, _shown_again(site, place, shown))
    return render(request, RunNote(note, element(place), _news(note, about)), headers={"Cache-Control": "no-store"})


def _shown_again(site: Site, place: Place, key: str) -> Shown | None:
    if key in ("", RECORDED):
        return shown(place, None) if key else None
    with site.database.reading() as session:
        return _own(key, *own.spec_of(session, key))
