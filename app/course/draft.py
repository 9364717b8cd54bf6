"""A lesson while it is read: what it declares, what its text uses, and every fault found on the way."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from app.course.code import CodeSource
from app.course.expression import Expression, Given
from app.course.model import FigureFields, Source
from app.course.yaml_file import Fields
from app.errors import Fault


@dataclass(frozen=True)
class Link:
    """A link to a place on this site, checked once all lessons are read."""

    file: str
    line: int
    key: str
    lesson: str
    href: str


@dataclass
class Draft:
    """Shared by the readers of one lesson's files. `coming` are the lessons of the course without a folder."""

    slug: str
    faults: list[Fault]
    figures: FigureFields
    code: CodeSource
    coming: frozenset[str]
    given: Given = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    worked: Mapping[str, Fields] = field(default_factory=dict)
    declared: dict[tuple[str, str], tuple[str, int, str]] = field(default_factory=dict)  # (kind, id): file, line, key
    used: set[tuple[str, str]] = field(default_factory=set)
    shown_figures: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    links: list[Link] = field(default_factory=list)
    printed: dict[Hashable, tuple[str, int]] = field(default_factory=dict)  # a settled expression: file, line

    def fault(self, file: str, line: int, key: str, message: str, remedy: str) -> None:
        self.faults.append(Fault(file, line, key, message, remedy))

    def declare(self, kind: str, name: str, file: str, line: int, key: str) -> bool:
        """Takes note of something the text has to use. False, and a fault, where the id is taken."""
        taken = self.declared.get((kind, name))
        if taken is not None:
            self.fault(file, line, key, f"the id {name} is taken by line {taken[1]}.", "Choose another id.")
            return False
        self.declared[kind, name] = (file, line, key)
        return True

    def use(self, kind: str, name: str) -> bool:
        """Takes note that the text shows or cites it. False where nothing of the kind was declared by this name."""
        self.used.add((kind, name))
        return (kind, name) in self.declared

    def print(self, expression: Expression, file: str, line: int) -> None:
        """Takes note that the page shows what this comes to with the lesson's numbers; a number that is given says nothing."""
        if len(expression.terms) > 1 or not expression.is_given:
            self.printed.setdefault(expression.settled(self.given), (file, line))

    def names(self, kind: str) -> list[str]:
        return [name for declared_kind, name in self.declared if declared_kind == kind]

    def add_anchor(self, anchor: str, file: str, line: int, key: str) -> None:
        if anchor in self.anchors:
            self.fault(file, line, key, f"#{anchor} is on this page already.",
                       "Show each thing once; link to it from elsewhere.")
        self.anchors.add(anchor)

    def report_unused(self) -> None:
        """A fault for everything declared that the text never shows or cites."""
        for (kind, name), (file, line, key) in self.declared.items():
            if (kind, name) not in self.used:
                remedy = f"Cite it with {{source {name}}}" if kind == "source" else f"Place it with ::{kind} {name}"
                self.fault(file, line, key, f"the {kind} {name} is never used.", f"{remedy}, or take it out.")
