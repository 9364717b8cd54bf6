"""Course: the files in lessons/ become checked objects, HTML and graded answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from app.course.load import read_course
from app.course.model import FigureFields
from app.errors import Fault
from app.figures import FIGURES
from app.figures.engine import Figure


def figure_fields(figures: Mapping[str, Figure] = FIGURES) -> FigureFields:
    """What lessons may name: every figure with its fields, as `load_course` takes it."""
    return {name: tuple(field.name for field in figure.fields) for name, figure in figures.items()}


def check_course(content_dirs: Sequence[Path]) -> list[Fault]:
    """Every fault of the lessons in these directories; empty when they can be taught."""
    return read_course(content_dirs, figure_fields())[1]
