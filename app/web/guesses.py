"""The guess of a lesson's first section: the form, what was guessed, and the reminder after the figure has answered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup
from starlette.requests import Request

from app.course.model import Lesson, Prediction
from app.errors import QuestionNotFound
from app.learners import store
from app.web import contexts
from app.web.deps import Site, Visitor


@dataclass(frozen=True)
class Kept:
    """The guesses a learner has made in a lesson, by the prediction's id."""

    answers: Mapping[str, str]

    @classmethod
    def read(cls, site: Site, who: Visitor, lesson: Lesson) -> Kept:
        if not who.known or not lesson.predictions:
            return cls({})
        with site.database.reading() as session:
            found = [store.prediction(session, who.id, lesson.slug, prediction.id) for prediction in lesson.predictions]
        return cls({guess.prediction: guess.answer for guess in found if guess is not None})


def prediction_view(
    request: Request, lesson: Lesson, prediction_id: str, kept: Kept,
    *, missing: bool = False, later: str = "", chosen: str = "", fresh: bool = False,
) -> contexts.Prediction:
    prediction = find_prediction(lesson, prediction_id)
    options = tuple(contexts.GuessOption(option.value, option.label, option.axis or "", Markup(option.text_html))
                    for option in prediction.options)
    return contexts.Prediction(
        id=prediction.id,
        lesson=lesson.slug,
        query=request.url.query,
        prompt_html=Markup(prediction.prompt_html),
        options=options,
        kept=kept.answers.get(prediction.id, ""),
        chosen=chosen,
        missing=missing,
        later=later,
        recall=recall_view(lesson, prediction_id, kept) if fresh else None,
    )


def recall_view(lesson: Lesson, prediction_id: str, kept: Kept) -> contexts.Recall:
    """The learner's own guess beside the answer; without one, an empty place that a guess made later fills."""
    prediction = find_prediction(lesson, prediction_id)
    option = prediction.option(kept.answers.get(prediction_id, ""))
    if option is None:
        return contexts.Recall("", Markup(""))
    return contexts.Recall(option.axis or "", Markup(option.recall_html))


def find_prediction(lesson: Lesson, prediction_id: str) -> Prediction:
    found = lesson.find_prediction(prediction_id)
    if found is None:
        raise QuestionNotFound(prediction_id)
    return found
