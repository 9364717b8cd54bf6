"""The lesson on the ring: its numbers, and every misreading it warns of as an answer with feedback of its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.course.grade import grade
from app.course.model import Experiment
from app.figures import alpha_beta
from tests.course.lessons import LoneLesson
from tests.course.test_real_lessons import text_of

lesson = LoneLesson("ring-all-reduce")
question, page = lesson.question, lesson.page


def test_the_text_holds_the_numbers_of_four_gpus() -> None:
    for said in ("sends its 32 numbers three times, 96 in all", "100 MB on 4 GPUs makes each of them send 150 MB",
                 "gets 37.5 MB",
                 "promises 900 GB/s", "each of them carries 450 GB/s", "cut 10 numbers into 4 equal chunks", "their mean, 15",
                 "here 60, however the buffer is cut"):
        assert said in page(), said


@pytest.mark.parametrize(("name", "answer", "status", "said"), [
    ("hundred-megabytes", "700", "right", "never reaches"),
    ("hundred-megabytes", "87.5", "wrong", "divided by"),
    ("hundred-megabytes", "350", "wrong", "one pass"),
    ("hundred-megabytes", "800", "wrong", "stays at home"),
    ("hundred-megabytes", "5600", "wrong", "all 8 GPUs send together"),
    ("gathered", "60", "right", "what comes out"),
    ("gathered", "15", "wrong", "wants the gathered size"),
    ("gathered", "20", "wrong", "something else to pass on"),
    ("gathered", "80", "wrong", "need not pass on"),
    ("uneven", "96", "right", "Single GPUs differ"),
    ("uneven", "120", "wrong", "fills all chunks up"),
    ("uneven", "19.2", "wrong", "on average"),
    ("bus-bandwidth", "350", "right", "a ring did the work"),
    ("bus-bandwidth", "200", "wrong", "That is algbw"),
    ("bus-bandwidth", "400", "wrong", "not the limit"),
    ("data-sheet", "900", "right", "half of the sheet"),
    ("data-sheet", "1800", "wrong", "both directions"),
])
def test_each_misreading_is_answered_by_name(name: str, answer: str, status: str, said: str) -> None:
    asked = question(name)
    verdict = grade(asked, asked.variant(0, 0), answer)
    assert verdict.status == status
    assert said in text_of(verdict.feedback_html)


def test_every_question_comes_again_with_other_numbers() -> None:
    assert all(asked.varies for asked in lesson().questions)


def test_both_guesses_are_asked_before_the_figures_that_answer_them() -> None:
    parts = [part for section in lesson().sections for part in section.parts if not isinstance(part, str)]
    order: list[tuple[str, str]] = [(part.kind, part.name) for part in parts]
    assert order.index(("prediction", "half-way")) < order.index(("figure", "ring")) < order.index(("recall", "half-way"))
    scatter = [order.index((kind, name)) for kind, name in (
        ("prediction", "gloo-scatter"), ("figure", "collectives"), ("recall", "gloo-scatter"))]
    assert scatter == sorted(scatter)


def test_nothing_gives_the_reduce_scatter_of_gloo_away_before_the_guess() -> None:
    before: list[str] = []
    for section in lesson().sections:
        for part in section.parts:
            if not isinstance(part, str) and part.name == "gloo-scatter":
                assert "no reduce-scatter" not in text_of("".join(before))
                return
            before.append(part if isinstance(part, str) else "")


def six_collectives() -> Experiment:
    found = lesson().find_experiment("six-collectives")
    assert found is not None
    return found


def test_the_recorded_run_holds_all_twelve_ways_and_was_equal_to_the_byte() -> None:
    experiment = six_collectives()
    reports = [experiment.recorded_report(run) for run in experiment.strategies]
    assert [report["verdict"] for report in reports if report is not None] == ["equal"] * 12
    totals = [sum(report["measured"]["payload_bytes_by_rank"]) for report in reports if report is not None]  # type: ignore[index]
    assert totals == [768, 768, 384, 768, 384, 384, 384, 384, 384, 384, 128, 128]


def test_the_twelve_ways_have_names_of_their_own_at_any_values() -> None:
    experiment = six_collectives()
    titles = ("All-reduce", "Reduce-scatter", "All-gather", "All-to-all", "Broadcast", "Send and receive")
    names = [f"{title} {way}" for title in titles for way in ("by hand", "through gloo")]
    assert [experiment.title_of(run) for run in experiment.strategies] == names
    assert [experiment.title_of(replace(run, H=8)) for run in experiment.strategies] == names


def test_times_are_taken_at_the_figure_that_holds_the_recorded_ones() -> None:
    experiment = lesson().find_experiment("own-machine")
    assert experiment is not None
    assert (experiment.purpose, experiment.figure) == ("timing", "alpha_beta")
    assert alpha_beta.timed_sizes(experiment.P) != ()
