"""A run as one visitor sees it: read in one snapshot, then turned into what templates draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from urllib.parse import urlencode

from sqlalchemy.orm import Session

from app.course.model import Experiment
from app.runs import own, store, take_away
from app.runs.results import predicted
from app.runs.store import Run, State
from app.runs.timing import PURPOSE
from app.web import run_contexts as views
from app.web import run_words as words
from app.web.deps import Site, Visitor
from app.web.experiments import FULL_WIDTH, recorded_sentence
from app.web.render import byte_count, thousands
from app.web.run_forms import Place, left_out_of
from app.web.run_results import MOST_TABS, results_of
from app.web.timing_views import is_timing, measured_times, recorded_times, timing_titles
from kernels import spec

POLL_MILLISECONDS = 200
SLOWEST_POLL_MILLISECONDS = 2000  # somebody far back in the queue asks less often
MOST_OUTLINES = 8
PLAIN_PLACE = "run"


@dataclass(frozen=True)
class Seen:
    """A run at one moment. `mine`: this visitor waits for it, so it may be taken back. `before`: where it ended without a
    result, the visitor's last run of the same place that has one."""

    run: Run
    position: int
    away_since: datetime | None
    mine: bool
    now: datetime
    before: Run | None = None


def see(session: Session, run: Run, who: Visitor) -> Seen:
    """All that a page tells of a run, in the snapshot that it was read in."""
    now = datetime.now(UTC)
    waiting = run.state is State.QUEUED
    return Seen(
        run=run,
        position=store.position(session, run) if waiting else 0,
        away_since=store.worker_away_since(session, now) if waiting else None,
        mine=who.known and not run.state.is_final and own.waits_for(session, who.id, run.id),
        now=now,
    )


def look(site: Site, run_id: str, who: Visitor, place: Place | None = None) -> Seen:
    """For its `place` in a lesson together with what stood there before. Raises RunNotFound."""
    with site.database.reading() as session:
        return _with_before(session, see(session, store.get(session, run_id), who), who, place)


def latest_at(site: Site, who: Visitor, place: Place) -> Seen | None:
    """The visitor's own latest run of an experiment. A visitor without a cookie has none, and costs no query."""
    if not who.known:
        return None
    with site.database.reading() as session:
        run = own.latest_that(session, who.id, place.is_at)
        return None if run is None else _with_before(session, see(session, run, who), who, place)


def _with_before(session: Session, seen: Seen, who: Visitor, place: Place | None) -> Seen:
    if place is None or not who.known or not seen.run.state.is_final or seen.run.results:
        return seen
    return replace(seen, before=own.latest_that(session, who.id, place.is_at, measured=True))


def element(place: Place | None) -> str:
    """The id of the place in its page."""
    return PLAIN_PLACE if place is None else f"run-{place.experiment.id}"


def titles(run: Run, place: Place | None) -> list[str]:
    """What the strategies of a run are called: as in the lesson, or told apart among themselves."""
    if is_timing(run.spec) or place is None:
        return plain_titles(run.spec)
    return [place.experiment.title_of(place.taught(one) or one) for one in run.spec.experiments]


def plain_titles(run: spec.RunSpec) -> list[str]:
    """The same for a run of no lesson."""
    if is_timing(run):
        return timing_titles(run)
    among = Experiment("", "", "", None, run.P, run.experiments)
    return [among.title_of(one) for one in run.experiments]


def status_view(seen: Seen, place: Place | None, said: str | None = None, *, alone: bool = False) -> views.Status:
    """A run under way. `said` names the moment that was told last; None where nothing is told, because the page says it.
    `alone` is its own page, which has no button."""
    run = seen.run
    moment = _moment(seen)
    sentence = _sentence(seen, titles(run, place))
    query = {"said": moment} | ({} if place is None else {"of": place.key}) | ({"alone": "true"} if alone else {})
    far_back = min(SLOWEST_POLL_MILLISECONDS, POLL_MILLISECONDS * max(1, seen.position))
    elapsed = words.seconds(max(0.0, (seen.now - run.asked_at).total_seconds()))
    return views.Status(
        place=element(place),
        poll=f"/runs/{run.id}/status?{urlencode(query)}",
        delay=far_back,
        sentence=sentence,
        phases=words.phases(run, seen.position, seen.now),
        so_far=f"{elapsed} so far, {words.seconds(run.spec.time_limit_seconds)} at most once it has started",
        said=sentence if said is not None and said != moment else "",
    )


def _moment(seen: Seen) -> str:
    """Names what is worth telling once: readings come and go too fast for that."""
    run, progress = seen.run, seen.run.progress
    if run.cancel_requested:
        return "stopping"
    if run.state is State.QUEUED:
        return f"place-{seen.position}{'-away' if seen.away_since else ''}"
    if progress is None or progress.phase not in ("warming up", "measuring"):
        return "launching"
    return f"{progress.phase.replace(' ', '-')}-{progress.experiment}"


def _sentence(seen: Seen, names: Sequence[str]) -> str:
    run = seen.run
    if run.state is not State.QUEUED:
        return words.running(run, names)
    return words.queued(seen.position, "" if seen.away_since is None else words.worker_away(seen.away_since, seen.now))


@dataclass(frozen=True)
class Setting:
    """How a place is shown: the button it has, what is said beside it, and whether htmx has just asked for it."""

    button: views.Button | None = None
    recorded: views.Recorded | None = None
    refusal: str = ""
    remark: str = ""
    said: str | None = None
    fresh: bool = False
    focus: bool = False
    permalink: bool = False


def place_view(seen: Seen | None, place: Place | None, who: Visitor, how: Setting) -> views.RunPlace:
    """The place of a run, whatever has come of it."""
    run = None if seen is None else seen.run
    alive = run is not None and not run.state.is_final
    status = status_view(seen, place, how.said, alone=how.permalink) if seen is not None and alive else None
    with_result = None if seen is None or run is None else run if run.results else seen.before
    measured = _measured(with_result, seen, place, who, how) if seen is not None and with_result is not None else None
    failure = _failure(run, how) if run is not None and run.state.is_final and not run.results else None
    return views.RunPlace(
        place=element(place),
        run_id="" if run is None else run.id,
        of="" if place is None else place.key,
        figure_form="" if how.permalink else _figure_form(place),
        button=None if alive else how.button,
        refusal=how.refusal,
        remark=_joined(seen, who) if seen is not None and alive else how.remark,
        status=status,
        outlines=_outlines(run, place) if run is not None and alive else (),
        cancellable=seen is not None and seen.mine and not seen.run.cancel_requested,
        measured=measured,
        failure=failure,
        recorded=how.recorded if measured is None and not alive else None,
        permalink=how.permalink,
        fresh=how.fresh and measured is not None and failure is None,
        focus=how.focus,
        said="" if how.said is None else how.remark or (status.said if status else _ending(measured, failure)),
    )


def _figure_form(place: Place | None) -> str:
    figure = None if place is None else place.experiment.figure
    return "" if figure is None else f"#{figure}-form"


def _ending(measured: views.Measured | None, failure: views.Failure | None) -> str:
    """What is told once when a run has ended."""
    if failure is not None:
        return f"{failure.heading} {failure.message}"
    if measured is None:
        return ""
    if measured.timing is not None:
        return f"Measured. {measured.timing.status}"
    assert measured.results is not None
    strategies = measured.results.strategies
    if len(strategies) > MOST_TABS:
        return f"Measured. {measured.results.headline.striptags()}"
    return " ".join(["Measured.", *(f"{one.title}: {one.measured_total}, {one.standing}." for one in strategies)])


def _joined(seen: Seen, who: Visitor) -> str:
    run = seen.run
    if run.asked_by == who.id or not seen.mine:
        return ""
    return "Another learner asked for exactly this run first. It is made once, and each of you gets its result."


def _outlines(run: Run, place: Place | None) -> tuple[views.Outline, ...]:
    """What every strategy is predicted to send on gloo, by rank where the cut is known; nothing where there are too many."""
    if is_timing(run.spec) or len(run.spec.experiments) > MOST_OUTLINES:
        return ()
    return tuple(_outline(run.spec.P, one, title) for one, title in zip(run.spec.experiments, titles(run, place), strict=True))


def _outline(size: int, experiment: spec.Experiment, title: str) -> views.Outline:
    result = predicted(size, experiment)
    volume, width = result.prediction.exact, result.bytes_per_element
    by_rank = volume.by_rank or (volume.total / size,) * size
    longest = max(by_rank) or Fraction(1)
    same = len(set(by_rank)) == 1
    amount = f"{byte_count(by_rank[0] * width)} each" if same else f"{byte_count(volume.total * width)} in all"
    axis = spec.STRATEGY_SPECS[experiment.strategy].axis
    ranks = tuple((rank, f"{float(sent / longest) * FULL_WIDTH:.2f}%", sent == 0 and rank >= volume.active_gpus)
                  for rank, sent in enumerate(by_rank))
    return views.Outline(title, "" if axis == "none" else axis, f"{amount} predicted", ranks)


def _measured(run: Run, seen: Seen, place: Place | None, who: Visitor, how: Setting) -> views.Measured:
    assert run.ended_at is not None
    name = f"own-{element(place)}"
    times = measured_times(name, run.report) if is_timing(run.spec) and run.report is not None else None
    whose = "" if run.asked_by == who.id or how.permalink else ", for somebody else who asked for the same"
    return views.Measured(
        run_id=run.id,
        setting="" if how.permalink else words.setting(run.spec),  # its own page has it as the headline
        age=f"Measured on this server {words.age(run.ended_at, seen.now)}{whose}.",
        phases=words.phases_of_done(run),
        results=_counted(run, place, name) if times is None else None,
        timing=times,
        command=take_away.command(run.spec),
    )


def _counted(run: Run, place: Place | None, name: str) -> views.Results:
    missing = left_out_of(place, run.spec) if place is not None else []
    title_of = place.experiment.title_of if place is not None else str
    left_out = tuple(_left_out(title_of(one), one, faults) for one, faults in missing)
    return results_of(name, "In one launch", run.results, titles(run, place), left_out)


def recorded_view(experiment: Experiment) -> views.Recorded | None:
    """Results in the order of the lesson, from the run that ships with it."""
    name = f"shown-{experiment.id}"
    if experiment.purpose == PURPOSE:
        times = recorded_times(name, experiment.P)
        return None if times is None else views.Recorded(recorded_sentence(times[1]), None, times[0])
    found = [(run, report) for run in experiment.strategies if (report := experiment.recorded_report(run)) is not None]
    if not found:
        return None
    reports = [report for _, report in found]
    results = results_of(name, "All of them, in one launch", reports, [experiment.title_of(run) for run, _ in found])
    return views.Recorded(recorded_sentence(reports[0]), results, None)


def _left_out(title: str, experiment: spec.Experiment, faults: Sequence[spec.Fault]) -> views.LeftOut:
    axis = spec.STRATEGY_SPECS[experiment.strategy].axis
    return views.LeftOut(title, "" if axis == "none" else axis, "; ".join(fault.allowed for fault in faults))


def _failure(run: Run, how: Setting) -> views.Failure:
    failure = run.failure
    return views.Failure(
        run_id=run.id,
        heading=words.failure_heading(run),
        setting="" if how.permalink else words.setting(run.spec),
        message="" if failure is None else failure.message,
        log="" if failure is None else failure.log_tail,
        phases=words.phases_of_ended(run),
        command="" if run.state is State.CANCELLED else take_away.command(run.spec),
    )


def facts(run: Run) -> tuple[views.Fact, ...]:
    """The environment of a run, as far as it is known."""
    environment = run.environment
    if environment is None:
        return ()
    day = datetime.fromisoformat(environment.started_at)
    gpus = f", {thousands(environment.gpu_count)} GPUs" if environment.gpu_count else ", no GPU"
    pairs = (
        ("Measured", f"{day.day} {day:%B %Y, %H:%M} UTC"),
        ("PyTorch", environment.torch),
        ("Backend", environment.backend),
        ("Transport", environment.transport),
        ("Started by", environment.launcher),
        ("Machine", f"{environment.platform}, {thousands(environment.cpu_count)} CPU cores{gpus}"),
        ("Python", environment.python),
    )
    return tuple(views.Fact(name, value) for name, value in pairs)
