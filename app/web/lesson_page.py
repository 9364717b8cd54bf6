"""A lesson as one learner sees it at one address: what fills its slots, its rail, and the whole page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from app.course.model import Lesson
from app.course.render import render_section
from app.errors import NotNow
from app.web import contexts
from app.web import figures as figure_pages
from app.web.deps import Site, Visitor, remember
from app.web.guesses import Kept, prediction_view, recall_view
from app.web.logs import log
from app.web.questions import question_view
from app.web.render import address, fragment, is_htmx, render
from app.web.run_forms import Place
from app.web.run_places import experiment_view
from app.web.standing import Past, past, standing, unreached

Slip = contexts.Question | contexts.Prediction | contexts.RunSlip  # a form that came back with a message


@dataclass(frozen=True)
class PageEmbed:
    """Fills the slots of a lesson for one learner and one address."""

    site: Site
    request: Request
    lesson: Lesson
    who: Visitor
    past: Past
    kept: Kept
    slip: Slip | None = None

    def figure(self, name: str, params: Mapping[str, str]) -> str:
        return figure_pages.embedded(self.request, self.lesson.slug, name, params)

    def question(self, question_id: str) -> str:
        if isinstance(self.slip, contexts.Question) and self.slip.id == question_id:
            return self._html(self.slip)
        question = self.lesson.find_question(question_id)
        assert question is not None, "load_course has checked every slot"
        return self._html(question_view(self.lesson, question, self.who, self.past.attempts, self.request.query_params))

    def experiment(self, experiment_id: str) -> str:
        experiment = self.lesson.find_experiment(experiment_id)
        assert experiment is not None, "load_course has checked every slot"
        slip = self.slip if isinstance(self.slip, contexts.RunSlip) else None
        return self._html(experiment_view(self.request, self.site, self.who, Place(self.lesson, experiment), slip))

    def prediction(self, prediction_id: str) -> str:
        if isinstance(self.slip, contexts.Prediction) and self.slip.id == prediction_id:
            return self._html(self.slip)
        return self._html(prediction_view(self.request, self.lesson, prediction_id, self.kept))

    def recall(self, prediction_id: str) -> str:
        return self._html(recall_view(self.lesson, prediction_id, self.kept))

    def _html(self, context: contexts.Context) -> str:
        return fragment(self.site.environment, context)


def show_lesson(
    request: Request, site: Site, lesson: Lesson, who: Visitor, slip: Slip | None = None
) -> Response:
    """The whole page; with a `slip`, or with values in the address that no figure takes, as 422 with messages beside them."""
    before = past(site, who)
    kept = Kept.read(site, who, lesson)
    embed = PageEmbed(site, request, lesson, who, before.of(lesson.slug), kept, slip)
    ahead = unreached(lesson, before)
    sections = tuple(
        contexts.SectionView(section.slug, section.title, Markup(render_section(section, embed)),
                             address(f"/lessons/{lesson.slug}/visits", request.url.query) if section.slug in ahead else "")
        for section in lesson.sections
    )
    rail = rail_view(site, lesson, before)
    page = contexts.LessonPage(
        lesson.title, lesson.question, _marked(lesson.objectives_html), _marked(lesson.out_of_scope_html),
        sections, rail.items, rail.number, rail.count, _next(site, lesson),
    )
    figures_fail = figure_pages.has_errors(request, lesson.figures)
    status = slip.status if isinstance(slip, contexts.RunSlip) else 422 if slip or figures_fail else 200
    return render(request, page, status)


def show_slip(
    request: Request, site: Site, lesson: Lesson, who: Visitor, slip: contexts.Question | contexts.Prediction
) -> Response:
    """422: the form with a message, alone for htmx, else in its page."""
    response = render(request, slip, 422) if is_htmx(request) else show_lesson(request, site, lesson, who, slip)
    return remember(request, response, who)


def show_refusal(
    request: Request, site: Site, lesson: Lesson, who: Visitor, slip: contexts.Question | contexts.Prediction, refused: NotNow
) -> Response:
    """429: the form with what was entered and when it can be sent again, alone for htmx, else in its page."""
    log.warning("refused for now", why=type(refused).__name__)
    response = show_slip(request, site, lesson, who, slip)
    response.status_code = 429
    response.headers["Retry-After"] = str(refused.retry_seconds)
    return response


def rail_view(site: Site, lesson: Lesson, before: Past) -> contexts.Rail:
    """The seven sections; the first that is not done is where reading goes on."""
    done = standing(lesson, before).sections
    now = done.index(False) if False in done else len(done) - 1
    items = tuple(
        contexts.RailItem(section.slug, section.title, done[number], number == now)
        for number, section in enumerate(lesson.sections)
    )
    entry = site.course.entry(lesson.slug)
    assert entry is not None
    return contexts.Rail(items, entry.number, len(site.course.entries))


def _next(site: Site, lesson: Lesson) -> contexts.NextLesson | None:
    entry = site.course.after(lesson.slug)
    if entry is None:
        return None
    return contexts.NextLesson("" if entry.coming else entry.slug, entry.number, entry.title, entry.question)


def _marked(texts: tuple[str, ...]) -> tuple[Markup, ...]:
    return tuple(Markup(text) for text in texts)
