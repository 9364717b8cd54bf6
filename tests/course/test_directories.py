"""course.yaml, lessons that are still coming, and an instructor's own directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from tests.course.conftest import SLUG, Content

COMING = "  - {slug: later, title: Later, question: And then, prerequisites: [two-gpus]}\n"
OWN = "lessons:\n  - {slug: ours, title: Ours, question: And here, prerequisites: [two-gpus]}\n"


def test_a_lesson_without_a_folder_is_coming(content: Content) -> None:
    content.write("course.yaml", content.text("course.yaml") + COMING)
    content.edit("lesson.md", "Two GPUs share", "[Next](/lessons/later#anywhere), two GPUs share")

    course, faults = content.read()

    assert faults == []
    assert [(entry.number, entry.slug, entry.coming) for entry in course.entries] == [(1, SLUG, False), (2, "later", True)]
    assert course.lesson("later") is None
    assert course.lesson("nothing") is None
    after = course.after(SLUG)
    assert after is not None
    assert after.slug == "later"
    assert course.after("later") is None
    hook = course.lessons[0].section("hook")
    assert hook is not None
    assert "<p><span>Next</span>, two GPUs share" in str(hook.parts[0])


def test_a_prerequisite_may_be_a_lesson_that_is_coming(content: Content) -> None:
    content.write("course.yaml", "lessons:\n  - {slug: first, title: F, question: Q, prerequisites: []}\n"
                  + content.text("course.yaml").removeprefix("lessons:\n").replace("[]", "[first]"))
    assert content.faults() == []


def test_a_second_directory_adds_lessons_after_the_first(content: Content, make_content: Callable[[str], Content]) -> None:
    own = make_content("own")
    own.write("course.yaml", OWN)
    (own.folder / "ours").mkdir()
    for name in ("lesson.yaml", "lesson.md"):
        text = content.text(name).replace("(#figure-volume)", f"(/lessons/{SLUG}#figure-volume)")
        (own.folder / "ours" / name).write_text(text, encoding="utf-8")

    course, faults = content.read(own.folder)

    assert faults == []
    assert [lesson.slug for lesson in course.lessons] == [SLUG, "ours"]


def test_a_directory_named_twice_is_read_once(content: Content, make_content: Callable[[str], Content]) -> None:
    own = make_content("own")
    own.write("course.yaml", OWN)

    course, faults = content.read(content.folder / ".." / content.folder.name, own.folder)

    assert faults == []
    assert [entry.slug for entry in course.entries] == [SLUG, "ours"]


def test_a_slug_of_both_directories_is_a_fault_that_names_both(
    content: Content, make_content: Callable[[str], Content]
) -> None:
    own = make_content("own")
    own.write("course.yaml", OWN.replace("ours", SLUG).replace("[two-gpus]", "[]"))

    _, faults = content.read(own.folder)

    assert [fault.file for fault in faults] == [str(own.path("course.yaml"))]
    assert f"taken by {content.path('course.yaml')}:2" in faults[0].message


def test_a_recorded_run_is_there_for_its_strategies_at_their_values(content: Content) -> None:
    values = {"P": 2, "L": 1, "H": 4, "T": 1, "m": 1, "options": {}}
    recorded = {"strategy": "data_parallel", "spec": values, "verdict": "equal"}
    content.write("recorded.json", json.dumps([recorded]))

    course, faults = content.read()

    assert faults == []
    experiment = course.lessons[0].find_experiment("count-it")
    assert experiment is not None
    run = experiment.strategies[0]
    assert experiment.recorded_report(run) == recorded
    assert experiment.recorded_report(replace(run, L=2)) is None
    assert experiment.recorded_report(replace(run, options={"sync": "per_parameter"})) is None
    assert experiment.title_of(run) == "Data parallel"
    assert (experiment.P, experiment.strategies[0].L, experiment.strategies[0].H) == (2, 1, 4)
