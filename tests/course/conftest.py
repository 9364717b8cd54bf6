"""A small course in a temporary directory: the example of docs/writing-a-lesson.md, which tests then spoil on purpose."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.course import figure_fields
from app.course.load import read_course
from app.course.model import Course
from app.errors import Fault

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "writing-a-lesson.md"
SLUG = "two-gpus"


def guide_block(name: str) -> str:
    """The fenced block of the guide that carries this file name."""
    found = re.search(rf"^```\w+ {re.escape(name)}\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None, f"the guide has no block {name}"
    return found[1]


@dataclass(frozen=True)
class Content:
    """A content directory that can be edited and read again."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / name if name == "course.yaml" else self.folder / SLUG / name

    def write(self, name: str, text: str) -> None:
        self.path(name).parent.mkdir(exist_ok=True)
        self.path(name).write_text(text, encoding="utf-8")

    def text(self, name: str) -> str:
        return self.path(name).read_text(encoding="utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replaces the first occurrence; it is an error if there is none."""
        text = self.text(name)
        assert old in text, f"{old!r} is not in {name}"
        self.write(name, text.replace(old, new, 1))

    def line_of(self, name: str, fragment: str) -> int:
        lines = self.text(name).splitlines()
        return next(number for number, line in enumerate(lines, start=1) if fragment in line)

    def read(self, *more: Path) -> tuple[Course, list[Fault]]:
        return read_course([self.folder, *more], figure_fields())

    def faults(self) -> list[Fault]:
        return self.read()[1]


@pytest.fixture
def content(tmp_path: Path) -> Content:
    made = Content(tmp_path / "content")
    made.folder.mkdir()
    for name in ("course.yaml", "lesson.yaml", "lesson.md"):
        made.write(name, guide_block(name))
    return made


@pytest.fixture
def make_content(tmp_path: Path) -> Callable[[str], Content]:
    def make(name: str) -> Content:
        made = Content(tmp_path / name)
        made.folder.mkdir()
        return made

    return make
