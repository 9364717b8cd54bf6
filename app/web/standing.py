"""Where a learner stands: sections reached and questions answered, read from the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.course.model import Course, Lesson
from app.learners import store
from app.learners.progress import lesson_progress
from app.web.deps import Site, Visitor

CHECKPOINT = "checkpoint"


@dataclass(frozen=True)
class Standing:
    """Sections done, in the lesson's order, and questions answered right."""

    sections: tuple[bool, ...]
    right: int
    questions: int

    @property
    def begun(self) -> bool:
        return any(self.sections) or self.right > 0

    @property
    def done(self) -> bool:
        return all(self.sections) and self.right == self.questions

    @property
    def words(self) -> str:
        answers = f"{self.right} of {self.questions} right"
        if self.done:
            return f"done, {answers}"
        reached = f"{sum(self.sections)} of {len(self.sections)} sections"
        return (f"{reached}, {answers}" if self.right else reached) if self.begun else "not begun"


@dataclass(frozen=True)
class Past:
    """All that a learner has left in the course so far."""

    attempts: tuple[store.Attempt, ...] = ()
    visits: tuple[store.Visit, ...] = ()

    def of(self, slug: str) -> Past:
        """The part that belongs to one lesson."""
        return Past(
            tuple(attempt for attempt in self.attempts if attempt.lesson == slug),
            tuple(visit for visit in self.visits if visit.lesson == slug),
        )


def past(site: Site, who: Visitor) -> Past:
    """Read in one snapshot. A visitor without a cookie has none, and costs no query."""
    if not who.known:
        return Past()
    with site.database.reading() as session:
        return Past(tuple(store.attempts(session, who.id)), tuple(store.visits(session, who.id)))


def standing(lesson: Lesson, before: Past) -> Standing:
    """A section is done when its end was reached; the checkpoint, when all its questions were answered right."""
    mine = before.of(lesson.slug)
    progress = lesson_progress(lesson, mine.attempts)
    reached = {visit.section for visit in mine.visits}
    sections = tuple(
        progress.state == "done" if section.slug == CHECKPOINT and lesson.questions else section.slug in reached
        for section in lesson.sections
    )
    return Standing(sections, progress.answered_right, progress.questions)


def standings(course: Course, before: Past) -> Mapping[str, Standing]:
    """Every lesson that can be opened, by slug."""
    return {lesson.slug: standing(lesson, before) for lesson in course.lessons}


def unreached(lesson: Lesson, before: Past) -> frozenset[str]:
    """Sections whose end is still to be noted. For the checkpoint its answers speak."""
    reached = {visit.section for visit in before.of(lesson.slug).visits}
    return frozenset(_slugs(lesson)) - reached - {CHECKPOINT}


def _slugs(lesson: Lesson) -> Iterable[str]:
    return (section.slug for section in lesson.sections)
