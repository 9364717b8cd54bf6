"""docs/writing-a-lesson.md: the lesson it shows can be taught, and what it says about the markup is so."""

from __future__ import annotations

import re

from app.course.directives import ALONE, WITH_BODY
from app.course.load import LESSON_KEYS
from app.course.model import SECTIONS
from app.course.render import render_section
from tests.course.conftest import GUIDE, SLUG, Content
from tests.course.pages import NamedSlots


def test_the_lesson_of_the_guide_loads_and_renders(content: Content) -> None:
    course, faults = content.read()
    assert faults == []
    lesson = course.lesson(SLUG)
    assert lesson is not None
    assert [section.title for section in lesson.sections] == list(SECTIONS)
    page = "".join(render_section(section, NamedSlots()) for section in lesson.sections)
    for piece in ("[prediction more-or-less]", "[recall more-or-less]", "[figure volume L=1 P=2]", "[experiment count-it]",
                  "[question four-gpus]", "tensor_active_gpus", "Patarasuk and Yuan", "32\u00a0bytes"):
        assert piece in page


def test_the_guide_names_every_directive_and_every_key() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    shown = set(re.findall(r"^:{2,3}([a-z]+)|`:{2,3}([a-z]+)", guide, re.MULTILINE))
    assert {first or second for first, second in shown} == {*ALONE, *WITH_BODY}
    assert all(f"{key}:" in guide or f"`{key}`" in guide for key in LESSON_KEYS)
