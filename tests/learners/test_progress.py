"""Progress follows from attempts alone: their order and repetition do not matter, and it never goes back."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.learners.progress import LessonProgress, lesson_progress, question_states


@dataclass(frozen=True)
class Lesson:
    """What progress sees of a lesson."""

    slug: str
    question_ids: tuple[str, ...]


@dataclass(frozen=True)
class Try:
    """What progress sees of an attempt."""

    lesson: str
    question: str
    outcome: str


RING = Lesson("ring", ("a", "b", "c"))
TRIES = st.lists(
    st.builds(
        Try, st.sampled_from(["ring", "zero"]), st.sampled_from(["a", "b", "c", "gone"]), st.sampled_from(["right", "wrong"])
    )
)
STATES = ["new", "started", "done"]


@pytest.mark.parametrize(
    ("tries", "expected"),
    [
        ([], LessonProgress(0, 3, "new")),
        ([Try("ring", "a", "wrong")], LessonProgress(0, 3, "started")),
        ([Try("ring", "a", "right")], LessonProgress(1, 3, "started")),
        ([Try("ring", q, "right") for q in "abc"], LessonProgress(3, 3, "done")),
        ([Try("zero", "a", "right"), Try("ring", "gone", "right")], LessonProgress(0, 3, "new")),
    ],
    ids=["nothing tried", "one wrong", "one right", "all right", "other lesson and vanished question"],
)
def test_a_lesson_is_new_then_started_then_done(tries: list[Try], expected: LessonProgress) -> None:
    assert lesson_progress(RING, tries) == expected


def test_a_lesson_without_questions_stays_new() -> None:
    assert lesson_progress(Lesson("ring", ()), [Try("ring", "a", "right")]) == LessonProgress(0, 0, "new")


def test_a_question_once_right_stays_right_after_a_wrong_try() -> None:
    tries = [Try("ring", "a", "right"), Try("ring", "a", "wrong"), Try("ring", "b", "wrong")]
    assert question_states(RING, tries) == {"a": "right", "b": "wrong", "c": "open"}


@given(TRIES, TRIES)
def test_more_tries_never_take_progress_away(earlier: list[Try], later: list[Try]) -> None:
    before, after = lesson_progress(RING, earlier), lesson_progress(RING, earlier + later)
    assert before.answered_right <= after.answered_right
    assert STATES.index(before.state) <= STATES.index(after.state)


@given(TRIES, st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_of_tries_matters(tries: list[Try], random: Random) -> None:
    shuffled = tries + tries
    random.shuffle(shuffled)
    assert lesson_progress(RING, shuffled) == lesson_progress(RING, tries)


@given(TRIES)
def test_done_means_every_question_right_and_new_means_none_tried(tries: list[Try]) -> None:
    progress = lesson_progress(RING, tries)
    states = set(question_states(RING, tries).values())
    assert 0 <= progress.answered_right <= progress.questions == 3
    assert (progress.state == "done") == (states == {"right"}) == (progress.answered_right == 3)
    assert (progress.state == "new") == (states == {"open"})
