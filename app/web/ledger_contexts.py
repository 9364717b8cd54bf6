"""What the ledger's template receives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup

from app.web.contexts import Context


@dataclass(frozen=True)
class ConceptLink:
    name: str
    title: str
    count: int


@dataclass(frozen=True)
class CheckRow:
    """A figure from elsewhere beside ours."""

    given: str
    expected: str
    ours: str
    unit: str
    source: str
    published: bool  # read in a paper; else derived or computed again
    holds: bool
    reason: str


@dataclass(frozen=True)
class MeasuredBy:
    """A strategy whose runs check a formula: how many of its settings were equal."""

    title: str
    equal: str
    holds: bool


@dataclass(frozen=True)
class SymbolRow:
    math: Markup
    meaning: str


@dataclass(frozen=True)
class FormulaText:
    """A formula as it is written, and when it holds."""

    title: str
    axis: str
    inline: Markup
    display: Markup
    symbols: tuple[SymbolRow, ...]
    unit: str
    scope: str
    assumptions: Markup
    breaks: Markup
    sources: tuple[tuple[str, str], ...]  # text and address


@dataclass(frozen=True)
class LedgerEntry:
    name: str
    anchor: str
    text: FormulaText
    checks: tuple[CheckRow, ...]
    measured: tuple[MeasuredBy, ...]
    against: str  # in a few words: how many figures and runs


@dataclass(frozen=True)
class LedgerSection:
    """The formulas of one concept."""

    name: str
    title: str
    entries: tuple[LedgerEntry, ...]


@dataclass(frozen=True)
class StrategyRow:
    """What became of a strategy over all its settings; `misses` and `gaps` in words, "" for none."""

    title: str
    axis: str
    cells: int
    equal: int
    misses: str
    gaps: str


@dataclass(frozen=True)
class Verified:
    """The last verification on this machine."""

    when: str
    scope: str
    largest: str
    settings: int
    holds: bool
    on: str
    rows: tuple[StrategyRow, ...]
    causes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class SeenRow:
    """How a strategy stood in the last run of a learner that had it."""

    title: str
    axis: str
    P: int
    when: str
    standing: str
    departs: bool


@dataclass(frozen=True)
class Ledger(Context):
    template: ClassVar[str] = "pages/ledger.html"
    count: int
    concept: str  # "" for all
    links: tuple[ConceptLink, ...]
    sections: tuple[LedgerSection, ...]
    verified: Verified | None
    seen: tuple[SeenRow, ...]
    runs: int  # of learners, that ended with a measurement
    trouble: str  # why there is none, where there should be
    published: int
    published_held: int
