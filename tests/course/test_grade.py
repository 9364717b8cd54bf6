"""Reading and grading answers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.course.grade import Unreadable, Verdict, grade, parse_number
from app.course.model import Lesson, Question
from tests.course.conftest import SLUG, Content

ACCEPTED = [
    "56", "56.0", "56.", "+56", "56 elements", "56elements", "56 numbers", " 56 ", "5.6e1", "5.6E+1", "560e-1", "112/2", "5_6",
    "５６", "56\u00a0elements",
]


@pytest.mark.parametrize("raw", ACCEPTED)
def test_a_number_is_read_in_every_common_form(raw: str) -> None:
    assert parse_number(raw, "elements") == 56


@pytest.mark.parametrize("raw", ["1,000", "1 000", "1_000", "1000", "1e3", "1\u202f000", "1000.000"])
def test_thousands_are_read_with_comma_blank_or_nothing(raw: str) -> None:
    assert parse_number(raw, "") == 1000


@pytest.mark.parametrize(
    ("raw", "value"),
    [("56 B", 56), ("56 bytes", 56), ("1 kB", 1000), ("1.5 KiB", 1536), ("2 GB", 2 * 10**9), ("1 TiB", 2**40), ("192b", 192)],
)
def test_bytes_are_converted(raw: str, value: int) -> None:
    assert parse_number(raw, "bytes") == value


@pytest.mark.parametrize(("raw", "unit"), [("1 sequence", "sequences"), ("1 all-reduce", "all-reduces"), ("1 token", "tokens"),
                                           ("1 GPU", "GPUs"), ("1 MB", "MB"), ("1 GB/s", "GB/s")])
def test_the_unit_of_the_question_is_taken_in_singular_too(raw: str, unit: str) -> None:
    assert parse_number(raw, unit) == 1


@pytest.mark.parametrize("raw", ["-1.5", "\u22121.5", "-3/2"])
def test_a_negative_number_is_read(raw: str) -> None:
    assert parse_number(raw, "") == Fraction(-3, 2)


@pytest.mark.parametrize(
    ("raw", "unit", "help_text"),
    [
        ("", "elements", "56 elements"),
        ("many", "elements", "Write one number"),
        ("1,5", "elements", "point"),
        ("1,00", "", "point"),
        ("1,000,00", "", "point"),
        ("56 B", "elements", "you answered in bytes"),
        ("56 GB", "elements", "you answered in bytes"),
        ("56 elements", "bytes", "you answered in elements"),
        ("56 elements", "tokens", "you answered in elements. Count tokens instead"),
        ("56 tokens", "", "Leave the unit out"),
        ("56 parrots", "tokens", "'parrots' is no unit"),
        ("0x38", "", "Write one number"),
        *((endless, "bytes", "slip in the number of digits") for endless in ("9" * 79, "1e99", "-1e31", "1e20 TiB")),
        *((nonsense, "", "Write one number") for nonsense in ("5 6", "1e999", "1/0", ".", "--5", "٥٦", "nan")),
    ],
)
def test_nonsense_gets_help(raw: str, unit: str, help_text: str) -> None:
    with pytest.raises(Unreadable, match=help_text):
        parse_number(raw, unit)


@given(st.text(max_size=80), st.sampled_from(["", "elements", "bytes", "tokens"]))
def test_no_answer_raises_anything_but_help(raw: str, unit: str) -> None:
    try:
        parse_number(raw, unit)
    except Unreadable:
        return


@given(st.fractions(), st.sampled_from(["{}", "{} elements", " {}"]))
def test_every_fraction_is_read_as_itself(number: Fraction, form: str) -> None:
    raw = form.format(f"{number.numerator}/{number.denominator}")
    if number.denominator > 0:
        assert parse_number(raw, "elements") == number


@given(st.integers(min_value=0, max_value=10**15))
def test_every_whole_number_is_read_with_and_without_thousands(number: int) -> None:
    for raw in (str(number), f"{number:,}", f"{number:,}".replace(",", " ")):
        assert parse_number(raw, "") == number


def lesson_of(content: Content) -> Lesson:
    course, faults = content.read()
    assert faults == []
    lesson = course.lesson(SLUG)
    assert lesson is not None
    return lesson


def asked(content: Content, name: str, raw: str, number: int = 0) -> Verdict:
    question = lesson_of(content).find_question(name)
    assert question is not None
    return grade(question, question.variant(number, 7), raw)


@pytest.mark.parametrize("raw", ["24", "24.0", " 24 ", "24 elements"])
def test_a_choice_is_right_by_its_value_however_it_is_typed(content: Content, raw: str) -> None:
    verdict = asked(content, "four-gpus", raw)
    assert (verdict.status, verdict.headline, verdict.value) == ("right", "24, yes.", "24")
    assert "1.5" in verdict.feedback_html


def test_a_wrong_choice_gets_its_own_feedback_and_not_the_answer(content: Content) -> None:
    verdict = asked(content, "four-gpus", "96")
    assert (verdict.status, verdict.headline) == ("wrong", "Not 96.")
    assert verdict.feedback_html == "<p>That is sent by all GPUs together.</p>\n"


@pytest.mark.parametrize("raw", ["", "25", "no idea", "<b>", "24" * 50])
def test_an_answer_that_is_no_option_costs_no_try(content: Content, raw: str) -> None:
    verdict = asked(content, "four-gpus", raw)
    assert (verdict.status, verdict.value) == ("unclear", "")
    assert not verdict.correct


def test_words_are_chosen_by_their_text(content: Content) -> None:
    assert asked(content, "what-travels", "the gradient").headline == "The gradient, yes."
    assert asked(content, "what-travels", "the activations").headline == "Not quite."


def test_a_foreseen_mistake_gets_its_feedback_and_any_other_number_the_general_one(content: Content) -> None:
    assert asked(content, "weights", "16 parameters").correct
    assert "one row" in asked(content, "weights", "8").feedback_html
    assert "matrix of" in asked(content, "weights", "17").feedback_html
    assert asked(content, "weights", "16 bytes").status == "unclear"


def test_the_tolerance_is_a_share_of_the_answer(content: Content) -> None:
    for raw, right in (("1.616", True), ("1.584", True), ("1.617", False), ("8/5", True)):
        assert asked(content, "factor", raw).correct == right


def test_an_answer_is_graded_at_the_numbers_of_its_own_try(content: Content) -> None:
    question = lesson_of(content).find_question("four-gpus")
    assert question is not None
    for number in range(6):
        instance = question.variant(number, 3)
        right = question.option(question.answer, instance.given).value
        assert grade(question, instance, right).correct


def first(content: Content) -> Question:
    question = lesson_of(content).find_question("four-gpus")
    assert question is not None
    return question


def test_the_first_try_is_the_same_for_everybody_and_later_tries_differ(content: Content) -> None:
    question = first(content)
    assert {question.variant(0, seed).prompt_html for seed in range(20)} == {question.variant(0, 0).prompt_html}
    for seed in range(5):
        tries = [tuple(sorted(question.variant(number, seed).given.items())) for number in range(5)]
        assert len(set(tries)) == 5
        assert question.variant(5, seed).given == question.variant(0, seed).given


def test_a_try_is_the_same_whenever_it_is_asked_for(content: Content) -> None:
    question, again = first(content), first(content)
    for number, seed in ((0, 0), (1, 5), (7, -3), (10**6, 2**63)):
        assert question.variant(number, seed) == again.variant(number, seed)


def test_the_order_of_options_depends_on_the_learner(content: Content) -> None:
    question = first(content)
    assert len({question.variant(0, seed).options for seed in range(40)}) > 3
