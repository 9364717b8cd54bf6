"""A checkpoint question as a learner left it. Feedback is in the page only where it belongs to the learner's own answer."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Literal

from markupsafe import Markup

from app.course.grade import Verdict, grade
from app.course.model import Instance, Lesson, Option, Question
from app.errors import BadInput
from app.learners import store
from app.web import contexts
from app.web.deps import Visitor
from app.web.query import without

TRY_PREFIX = "try."  # try.<question>=2 in a lesson's address shows that question with its third set of numbers
LAST_VARIANT = 9999
LONG_LABEL = 14  # letters on an option from which options stand below each other

Mark = Literal["", "right", "wrong"]


def question_view(
    lesson: Lesson, question: Question, who: Visitor, attempts: Sequence[store.Attempt], query: Mapping[str, str],
    *, variant: int | None = None, fresh: bool = False,
) -> contexts.Question:
    """A question as this learner left it. The variant is the one asked for, else the latest one tried, else the first."""
    mine = [attempt for attempt in attempts if attempt.question == question.id]
    shown = variant if variant is not None else _asked_variant(question, query)
    if shown is None:
        shown = mine[-1].variant if mine else 0
    instance = question.variant(shown, who.seed)
    here = [attempt for attempt in mine if attempt.variant == shown]
    last = here[-1] if here else None
    verdict = None if last is None else grade(question, instance, last.answer)
    feedback = None if verdict is None else feedback_on(verdict)
    answer, chosen = (last.answer if last else "", verdict.value if verdict else "")
    return _view(lesson, question, instance, query,
                 answer=answer, chosen=chosen, feedback=feedback, tries=len(mine), fresh=fresh)


def untried_view(
    lesson: Lesson, question: Question, who: Visitor, attempts: Sequence[store.Attempt], query: Mapping[str, str],
    *, answer: str, variant: int, feedback: contexts.Feedback,
) -> contexts.Question:
    """The question with an answer that was no try and stays in its place: it could not be read, or not be kept for now."""
    tries = sum(attempt.question == question.id for attempt in attempts)
    instance = question.variant(variant, who.seed)
    chosen = " ".join(answer.split())
    return _view(lesson, question, instance, query, answer=answer, chosen=chosen, feedback=feedback, tries=tries, fresh=True)


def _view(
    lesson: Lesson, question: Question, instance: Instance, query: Mapping[str, str],
    *, answer: str, chosen: str, feedback: contexts.Feedback | None, tries: int, fresh: bool,
) -> contexts.Question:
    kept = without(query, TRY_PREFIX + question.id)
    options = tuple(_option(option, chosen, feedback) for option in instance.options)
    following = f"{TRY_PREFIX}{question.id}={instance.variant + 1}"
    offers = _is_graded(feedback) and question.varies and instance.variant < LAST_VARIANT
    return contexts.Question(
        id=question.id,
        lesson=lesson.slug,
        number=lesson.question_ids.index(question.id) + 1,
        count=len(lesson.questions),
        next_id=_following(lesson, question),
        query=kept,
        kind=question.kind,
        prompt_html=Markup(instance.prompt_html),
        unit=instance.unit,
        options=options,
        long_options=any(len(option.value) > LONG_LABEL for option in options),
        answer=answer,
        variant=instance.variant,
        submission=secrets.token_urlsafe(12),
        feedback=feedback,
        tries=tries,
        another="&".join(filter(None, (kept, following))) if offers else "",
        fresh=fresh,
    )


def _option(option: Option, chosen: str, feedback: contexts.Feedback | None) -> contexts.OptionView:
    """Marked only where the learner chose it: nothing here tells the others right from wrong."""
    mine = option.value == chosen
    mark: Mark = ""
    if mine and feedback is not None and (feedback.status == "right" or feedback.status == "wrong"):
        mark = feedback.status
    return contexts.OptionView(option.value, Markup(option.html), mine, mark)


def _is_graded(feedback: contexts.Feedback | None) -> bool:
    return feedback is not None and feedback.status in ("right", "wrong")


def feedback_on(verdict: Verdict) -> contexts.Feedback:
    """What the course says about an answer."""
    return contexts.Feedback(verdict.status, Markup(verdict.headline), Markup(verdict.feedback_html))


def not_now(why: str) -> contexts.Feedback:
    """Why an answer cannot be kept for now, and when it can."""
    return contexts.Feedback("later", Markup("Not now."), Markup("<p>{}</p>").format(why))


def _asked_variant(question: Question, query: Mapping[str, str]) -> int | None:
    """The try that the address names. Raises BadInput for what is not a number of one."""
    name = TRY_PREFIX + question.id
    text = query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 4):
        raise BadInput({name: f"must be a whole number from 0 to {LAST_VARIANT}."})
    return int(text)


def _following(lesson: Lesson, question: Question) -> str:
    """The id of the next question; "" after the last."""
    later = lesson.question_ids[lesson.question_ids.index(question.id) + 1:]
    return later[0] if later else ""
