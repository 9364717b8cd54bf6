"""Checks of the course as a whole, before any lesson is read: slugs and prerequisites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.errors import Fault


@dataclass(frozen=True)
class Listed:
    """A line of a course.yaml: a lesson by its slug, what it builds on, its folder, and where the line stands."""

    slug: str
    title: str
    question: str
    prerequisites: tuple[str, ...]
    folder: Path
    file: str
    line: int
    key: str

    def fault(self, message: str, remedy: str) -> Fault:
        return Fault(self.file, self.line, self.key, message, remedy)


def slug_faults(listed: Sequence[Listed]) -> list[Fault]:
    """No two lessons may share a slug, be it across content directories: it is an address, and a key of stored answers."""
    faults: list[Fault] = []
    first: dict[str, Listed] = {}
    for entry in listed:
        taken = first.setdefault(entry.slug, entry)
        if taken is not entry:
            faults.append(entry.fault(f"the slug {entry.slug} is taken by {taken.file}:{taken.line}.", "Choose another slug."))
    return faults


def prerequisite_faults(listed: Sequence[Listed]) -> list[Fault]:
    """A prerequisite is a lesson that stands further up; so there can be no circle."""
    faults: list[Fault] = []
    slugs = [entry.slug for entry in listed]
    for position, entry in enumerate(listed):
        for wanted in entry.prerequisites:
            if wanted not in slugs:
                faults.append(entry.fault(f"{entry.slug} builds on {wanted}, which is no lesson.",
                                          f"Lessons are {', '.join(sorted(slugs))}."))
            elif wanted not in slugs[:position]:
                faults.append(entry.fault(f"{entry.slug} builds on {wanted}, which does not stand before it.",
                                          "Change the order, or drop it."))
    return faults
