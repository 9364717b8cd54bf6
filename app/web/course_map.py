"""GET / : the course map with the learner's progress, and its rows for pages that show the map too."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.course.model import AXES, SECTIONS, Course, Entry, Lesson
from app.web import contexts
from app.web.deps import SiteDep, VisitorDep
from app.web.render import render
from app.web.standing import Standing, past, standings
from kernels.spec import STRATEGY_SPECS

router = APIRouter()
BLANK_SEGMENTS = (False,) * len(SECTIONS)


@router.get("/")
def course_map(request: Request, site: SiteDep, who: VisitorDep) -> Response:
    where = standings(site.course, past(site, who))
    lines = rows(site.course, where)
    return render(request, contexts.CourseMap(lines, *_lead(site.course, lines, where)))


def rows(course: Course, where: Mapping[str, Standing]) -> tuple[contexts.MapRow, ...]:
    """Every line of the course; without a standing a lesson is not begun."""
    return tuple(_row(entry, where.get(entry.slug)) for entry in course.entries)


def axes_of(lesson: Lesson) -> tuple[str, ...]:
    """The axes of parallelism whose strategies the lesson runs."""
    strategies = {run.strategy for experiment in lesson.experiments for run in experiment.strategies}
    found = {STRATEGY_SPECS[name].axis for name in strategies}
    return tuple(axis for axis in AXES if axis in found)


def _row(entry: Entry, standing: Standing | None) -> contexts.MapRow:
    if entry.lesson is None:
        return contexts.MapRow(entry.number, entry.slug, entry.title, entry.question, (), True, (), "coming")
    segments = BLANK_SEGMENTS if standing is None else standing.sections
    words = "not begun" if standing is None else standing.words
    return contexts.MapRow(entry.number, entry.slug, entry.title, entry.question, axes_of(entry.lesson), False, segments, words)


def _lead(
    course: Course, lines: tuple[contexts.MapRow, ...], where: Mapping[str, Standing]
) -> tuple[contexts.MapRow | None, str, str]:
    """Where the button leads, its verb, and a hint: the first lesson that is not done, else the first to read again."""
    open_lines = [line for line in lines if not line.coming]
    if not open_lines:
        return None, "", ""
    line = next((line for line in open_lines if not where[line.slug].done), None)
    if line is None:
        return open_lines[0], "Reread", "You have finished every lesson there is so far."
    if not where[line.slug].begun:
        return line, "Begin with" if line is open_lines[0] else "Go on to", line.question
    lesson = course.lesson(line.slug)
    assert lesson is not None
    ahead = next((section.title for section, done in zip(lesson.sections, line.segments, strict=True) if not done), "")
    return line, "Continue with", f"{line.title}: {ahead.lower()} is next." if ahead else line.title
