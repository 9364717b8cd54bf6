"""The lessons that ship: they load, accept their own answers, and tell nobody beforehand."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

import pytest

from app.course import check_course, figure_fields
from app.course.grade import grade
from app.course.load import load_course
from app.course.model import SECTIONS, Course, Instance, Lesson, Question
from app.course.render import render_section
from app.figures import FIGURES
from app.figures.inputs import parse
from tests.course.conftest import ROOT
from tests.course.pages import NamedSlots

LESSONS = ROOT / "lessons"
TRIES = range(8)
SEEDS = (0, 1, 2**40)
ORDER = ["split-three-ways", "ring-all-reduce", "data-parallel", "tensor-parallel", "pipeline-parallel", "zero-and-fsdp",
         "activation-memory", "three-d", "elastic", "deepspeed-config", "choosing"]


@lru_cache(maxsize=1)
def course() -> Course:
    return load_course([LESSONS], figure_fields())


def flagship() -> Lesson:
    lesson = course().lesson("split-three-ways")
    assert lesson is not None
    return lesson


def pages() -> list[tuple[Lesson, str]]:
    return [(lesson, page_of(lesson)) for lesson in course().lessons]


def page_of(lesson: Lesson) -> str:
    return "".join(render_section(section, NamedSlots()) for section in lesson.sections)


def tries() -> Iterator[tuple[Question, Instance]]:
    for lesson in course().lessons:
        for question in lesson.questions:
            for number in TRIES:
                for seed in SEEDS:
                    yield question, question.variant(number, seed)


def text_of(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def test_no_shipped_lesson_has_a_fault() -> None:
    assert check_course([LESSONS]) == []


def test_the_course_names_all_eleven_in_order() -> None:
    assert [entry.slug for entry in course().entries] == ORDER


def test_every_lesson_has_its_sections_objectives_and_limits() -> None:
    for lesson in course().lessons:
        assert [section.title for section in lesson.sections] == list(SECTIONS)
        assert lesson.objectives_html
        assert lesson.out_of_scope_html
        assert lesson.figures
        assert lesson.experiments


def test_every_question_accepts_its_own_answer_at_every_try() -> None:
    for question, instance in tries():
        verdict = grade(question, instance, question.option(question.answer, instance.given).value)
        assert verdict.status == "right", (question.id, instance.given)
        assert verdict.headline.endswith(", yes.")


def test_every_wrong_option_is_rejected_with_its_own_feedback() -> None:
    for question, instance in tries():
        for choice in question.wrong:
            verdict = grade(question, instance, question.option(choice, instance.given).value)
            assert verdict.status == "wrong", (question.id, instance.given)
            assert verdict.feedback_html == choice.feedback.html(instance.given)
        feedback = [choice.feedback for choice in (question.answer, *question.wrong)]
        assert len(set(feedback)) == len(feedback)


def test_options_are_the_answer_and_the_mistakes_and_nothing_marks_the_answer() -> None:
    places: Counter[int] = Counter()
    for question, instance in tries():
        if question.kind == "number":
            assert instance.options == ()
            continue
        right = question.option(question.answer, instance.given)
        every = [question.option(choice, instance.given) for choice in (question.answer, *question.wrong)]
        assert sorted(option.value for option in instance.options) == sorted(option.value for option in every)
        assert all(option.value == text_of(option.html) for option in instance.options)
        places[instance.options.index(right)] += 1
    assert len(places) >= 4
    assert max(places.values()) < 0.5 * places.total()


def test_no_feedback_stands_on_a_page_or_in_a_question_beforehand() -> None:
    for lesson, page in pages():
        said = text_of(page)
        for question in lesson.questions:
            instance = question.variant(0, 0)
            for choice in (question.answer, *question.wrong):
                feedback = text_of(choice.feedback.html(instance.given))
                assert feedback not in said
                assert feedback not in str(instance)
                assert str(choice.value) not in str(instance)


def test_pages_hold_no_script_no_style_and_no_open_hole() -> None:
    for _, page in pages():
        assert not re.search(r"<script|<[^>]* on[a-z]+=|<[^>]* style=|\x00|\{=|<img", page)


def test_every_id_of_a_page_is_there_once_and_every_inner_link_leads_to_one() -> None:
    for lesson, page in pages():
        ids = re.findall(r' id="([^"]+)"', page) + [section.slug for section in lesson.sections]
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'<a href="#([^"]+)"', page)) <= set(ids)


def test_figures_accept_the_starting_values_that_lessons_give_them() -> None:
    for _, page in pages():
        for name, values in re.findall(r"\[figure (\w+)((?: \w+=\w+)*)\]", page):
            given = dict(word.split("=") for word in values.split())
            assert parse(FIGURES[name].fields, given).errors == {}


def test_numbers_of_the_flagship_are_the_seeds() -> None:
    page = text_of(page_of(flagship()))
    equal_batch = "48 by each GPU for the batch, 96 by each GPU for the matrices and 32 by all GPUs together for the layers"
    for said in ("32 numbers in all", "at most 48, 24 and 4", "together send 192, 96 and 8", "never exceeds 64",
                 "The ranking 48, 24, 8", equal_batch):
        assert said in page


@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_question_is_eight_gpus_and_fifty_six(seed: int) -> None:
    question = flagship().questions[0]
    instance = question.variant(0, seed)
    assert "on 8 GPUs" in instance.prompt_html
    assert {option.value for option in instance.options} == {"28", "48", "56", "64", "448"}
    assert [grade(question, instance, option.value).status for option in instance.options].count("right") == 1
    assert grade(question, instance, "56 elements").correct


@pytest.mark.parametrize(
    ("name", "raw"),
    [("doubled-width", "the batch"), ("break-even", "2 tokens"), ("deep-pipeline", "24"), ("same-scope", "672")],
)
def test_the_other_first_tries_of_the_flagship(name: str, raw: str) -> None:
    question = flagship().find_question(name)
    assert question is not None
    assert grade(question, question.variant(0, 1), raw).correct


def test_the_worked_example_computes_each_line() -> None:
    section = flagship().section("worked-example")
    assert section is not None
    table = render_section(section, NamedSlots())
    numbers = re.findall(r'</span></td><td>([^<]+)<input type="checkbox" class="peek"', table)
    assert numbers == ["32", "1.5", "48", "4", "6", "24", "1", "8"]
    assert [drawing.count("h11v11h-11z") for drawing in re.findall(r'class="sq".*?</svg>', table)] == [32, 48, 4, 6, 24, 1, 8]


def test_the_prediction_is_asked_before_any_figure() -> None:
    order = [part.kind for section in flagship().sections for part in section.parts if not isinstance(part, str)]
    assert order[0] == "prediction"
    assert order.index("recall") > order.index("figure")
