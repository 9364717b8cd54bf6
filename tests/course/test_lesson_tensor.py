"""The lesson on tensor parallelism: its numbers, and every mistake it warns of as an answer with feedback of its own."""

from __future__ import annotations

import pytest

from app.course.grade import grade
from tests.course.lessons import LoneLesson
from tests.course.test_real_lessons import text_of

lesson = LoneLesson("tensor-parallel")
question, page = lesson.question, lesson.page


def test_the_text_holds_the_numbers_of_the_toy_and_of_gpt_3() -> None:
    for said in ("each GPU sent 24 elements in a step", "Whoever holds the column works out 25",
                 "4 GPUs hold 6, 5, 2 and 12", "draws level at 12,288 tokens, which is 6 sequences of 2,048",
                 "72 elements from each GPU, 1.5 times the promise", "of 8 GPUs 4 work, and together they send 96 elements",
                 "383 in 96 Transformer layers instead of 384", "176,160,768", "352,321,536"):
        assert said in page(), said


@pytest.mark.parametrize(("name", "answer", "status", "said"), [
    ("pairs", "96", "right", "2 pairs"),
    ("pairs", "192", "wrong", "each layer for itself"),
    ("pairs", "48", "wrong", "forgot"),
    ("pairs", "384", "wrong", "send together"),
    ("pairs", "64", "wrong", "payloads are right"),
    ("full-recompute", "144", "right", "Two forward, two when"),
    ("full-recompute", "96", "wrong", "without recomputation"),
    ("full-recompute", "192", "wrong", "backward pass still runs only once"),
    ("full-recompute", "72", "wrong", "one pair in each layer"),
    ("full-recompute", "95", "wrong", "on raw input besides"),
    ("layer-volume", "3,145,728", "right", "Four all-reduces"),
    ("layer-volume", "1,572,864", "wrong", "one direction"),
    ("layer-volume", "4,718,592", "wrong", "full recomputation"),
    ("layer-volume", "2,097,152", "wrong", "four payloads"),
    ("layer-volume", "4,194,304", "wrong", "limit for a very large group"),
    ("own-tokens-traffic", "They stay the same", "right", "two halves of an all-reduce"),
    ("own-tokens-traffic", "They double", "wrong", "number of collectives doubles"),
    ("own-tokens-traffic", "They grow by half", "wrong", "in disguise"),
    ("own-tokens-traffic", "They halve", "wrong", "left out the all-gather"),
    ("own-tokens-traffic", "They shrink to one part in 4", "wrong", "kept between pairs"),
    ("which-group", "4", "right", "3 whole heads"),
    ("which-group", "8", "wrong", "must not be cut in two"),
    ("which-group", "5", "wrong", "would be refused"),
    ("which-group", "24", "wrong", "not enough heads"),
    ("level-in-pairs", "64", "right", "same ring factor"),
    ("level-in-pairs", "32", "wrong", "each layer"),
    ("idle-columns", "192", "right", "4 GPUs have something to multiply"),
    ("idle-columns", "384", "wrong", "took your word"),
    ("idle-columns", "48", "wrong", "one of the GPUs that work"),
    ("idle-columns", "336", "wrong", "let the idle GPUs send"),
    ("unfinished", "3", "right", "First the sum"),
    ("unfinished", "7", "wrong", "not finished"),
])
def test_every_mistake_has_feedback_of_its_own(name: str, answer: str, status: str, said: str) -> None:
    verdict = grade(question(name), question(name).variant(0, seed=1), answer)
    assert verdict.status == status
    assert said in text_of(verdict.feedback_html)


def test_at_least_two_questions_vary() -> None:
    assert len(lesson().questions) >= 4
    assert sum(one.varies for one in lesson().questions) >= 2


def test_every_recorded_run_was_as_predicted_and_only_gloos_reduce_scatter_has_a_gap() -> None:
    totals: list[tuple[str, int, int]] = []
    for experiment in lesson().experiments:
        for run in experiment.strategies:
            report = experiment.recorded_report(run)
            assert report is not None
            assert report["verdict"] == "equal"
            totals.append((experiment.title_of(run), _total(report, "predicted"), _total(report, "backend_predicted")))
    assert [(formula, backend) for _, formula, backend in totals] == [
        (384, 384), (192, 192), (192, 192), (192, 192), (768, 768), (768, 768), (768, 1152)]


def _total(report: object, whose: str) -> int:
    assert isinstance(report, dict)
    return int(report[whose]["total_bytes"])
