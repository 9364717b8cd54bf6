"""An experiment that takes times: what a lesson may say of it, and what is told where it says something else."""

from __future__ import annotations

import pytest

from app.course.model import Experiment
from tests.course.conftest import Content

COUNTS = """    figure: volume
    strategies:
      - strategy: data_parallel
"""
TIMES = """    figure: volume
    purpose: timing
    strategies:
      - strategy: ring_all_reduce
"""


def only_experiment(content: Content) -> Experiment:
    course, faults = content.read()
    assert faults == []
    (experiment,) = course.lessons[-1].experiments
    return experiment


def test_a_lesson_may_take_times(content: Content) -> None:
    content.edit("lesson.yaml", COUNTS, TIMES + "        options: {implementation: ring}\n")
    assert only_experiment(content).purpose == "timing"
    assert only_experiment(content).recorded == ()


def test_without_a_word_bytes_are_counted(content: Content) -> None:
    assert only_experiment(content).purpose == "counting"


@pytest.mark.parametrize(("times", "key", "message"), [
    (TIMES.replace("timing", "guessing"), "purpose", "there is no purpose 'guessing'"),
    (TIMES + "      - strategy: ddp\n", "strategies", "a timing run has one strategy, ring_all_reduce"),
    (TIMES.replace("ring_all_reduce", "ddp"), "strategies", "a timing run has one strategy, ring_all_reduce"),
    (TIMES + "        options: {collective: broadcast}\n", "strategies", "alpha and B are fitted to an all-reduce"),
    (TIMES + "        options: {elements: 32}\n", "strategies", "a timing run sets elements itself"),
    (TIMES + "    P: 1\n", "P", "P = 1 sends no message"),
    (TIMES + "    recorded: mine.json\n", "recorded", "belongs to its figure"),
])
def test_what_no_timing_run_could_be_is_a_fault_with_a_remedy(content: Content, times: str, key: str, message: str) -> None:
    content.edit("lesson.yaml", COUNTS, times)
    found = [fault for fault in content.faults() if message in fault.message]
    assert [fault.key.split(".")[-1] for fault in found] == [key]
    assert found[0].line > 0
    assert found[0].remedy
