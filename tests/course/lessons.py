"""One lesson loaded alone, for the tests of its numbers and of its questions."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from app.course import figure_fields
from app.course.load import load_course
from app.course.model import Lesson, Question
from app.course.render import render_section
from tests.course.conftest import ROOT
from tests.course.pages import NamedSlots
from tests.course.test_real_lessons import text_of


@lru_cache
def load_alone(slug: str) -> Lesson:
    """Judged by itself; the other lessons are still to come there."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "lessons" / slug, folder / slug)
        shutil.copy(ROOT / "lessons" / "course.yaml", folder)
        found = load_course([folder], figure_fields()).lesson(slug)
    assert found is not None
    return found


@dataclass(frozen=True)
class LoneLesson:
    """What a test asks of a lesson; it is loaded when it is first asked."""

    slug: str

    def __call__(self) -> Lesson:
        return load_alone(self.slug)

    def question(self, name: str) -> Question:
        found = self().find_question(name)
        assert found is not None
        return found

    def page(self) -> str:
        """All of its text, as it is read."""
        return text_of("".join(render_section(section, NamedSlots()) for section in self().sections))
