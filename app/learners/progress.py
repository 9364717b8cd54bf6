"""How far a learner is, worked out from attempts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

State = Literal["new", "started", "done"]


class LessonShape(Protocol):
    """What progress needs to know of a lesson."""

    @property
    def slug(self) -> str:
        """The lesson's name in addresses."""

    @property
    def question_ids(self) -> Sequence[str]:
        """Its questions, each id once."""


class Try(Protocol):
    """What progress needs to know of an attempt."""

    @property
    def lesson(self) -> str:
        """Slug of the lesson."""

    @property
    def question(self) -> str:
        """Id of the question."""

    @property
    def outcome(self) -> str:
        """`right` or `wrong`."""


@dataclass(frozen=True)
class LessonProgress:
    """How far a learner is in one lesson: `answered_right` of `questions`."""

    answered_right: int
    questions: int
    state: State


def question_states(lesson: LessonShape, attempts: Iterable[Try]) -> dict[str, Literal["open", "wrong", "right"]]:
    """Each question of the lesson, in order: once right stays right, whatever is tried later; `open` was never tried.

    Attempts at questions that the lesson no longer has count for nothing.
    """
    mine = [attempt for attempt in attempts if attempt.lesson == lesson.slug]
    tried = {attempt.question for attempt in mine}
    right = {attempt.question for attempt in mine if attempt.outcome == "right"}
    return {
        question: "right" if question in right else "wrong" if question in tried else "open" for question in lesson.question_ids
    }


def lesson_progress(lesson: LessonShape, attempts: Iterable[Try]) -> LessonProgress:
    """New until a question is tried, done when every question has been answered right once."""
    states = list(question_states(lesson, attempts).values())
    answered_right = states.count("right")
    state: State = "started"
    if states.count("open") == len(states):
        state = "new"
    elif answered_right == len(states):
        state = "done"
    return LessonProgress(answered_right, len(states), state)
