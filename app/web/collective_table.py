"""Collectives side by side, each run by hand and through the library: a row each, in place of a dozen results in a pile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.figures.collectives import COLLECTIVES
from app.theory.volume import CAUSE_TEXT, UNEVEN, Cause
from app.web.contexts import NamedCause
from app.web.experiments import cause_name
from app.web.render import byte_count, thousands
from kernels.spec import IMPLEMENTATIONS

Report = Mapping[str, Any]
STRATEGY = "ring_all_reduce"


@dataclass(frozen=True)
class Count:
    """One way of doing a collective. `apart` where it sends something else than the formula says."""

    measured: str
    by_rank: str
    verdict: str
    apart: bool


@dataclass(frozen=True)
class CollectiveRow:
    title: str
    formula: str
    by_hand: Count | None
    library: Count | None
    causes: str


@dataclass(frozen=True)
class CollectiveTable:
    backend: str
    note: str
    rows: tuple[CollectiveRow, ...]
    causes: tuple[NamedCause, ...]


def collective_table(reports: Sequence[Report]) -> CollectiveTable | None:
    """None unless these are several collectives and nothing else."""
    counted: dict[str, dict[str, Report]] = {}
    for report in reports:
        if report["strategy"] != STRATEGY:
            return None
        options = report["spec"]["options"]
        ways = counted.setdefault(options.get("collective", "all_reduce"), {})
        ways[options.get("implementation", IMPLEMENTATIONS[0])] = report
    if len(counted) < 3 or sum(map(len, counted.values())) < len(reports):
        return None
    names = list(dict.fromkeys(cause for report in reports for cause in _causes(report)))
    return CollectiveTable(
        backend=reports[0]["environment"]["backend"],
        note=_note(reports),
        rows=tuple(_row(one.title, counted[one.name]) for one in COLLECTIVES if one.name in counted),
        causes=tuple(NamedCause(cause_name(one), CAUSE_TEXT[Cause(one)]) for one in names),
    )


def _note(reports: Sequence[Report]) -> str:
    agreeing = min(report["measured"]["agreeing"] for report in reports)
    repetitions = max(report["measured"]["repetitions"] for report in reports)
    return f"Bytes sent by all GPUs together, in one call. {agreeing} of {repetitions} readings agree in each."


def _row(title: str, ways: Mapping[str, Report]) -> CollectiveRow:
    some = next(iter(ways.values()))
    causes = dict.fromkeys(cause_name(cause) for report in ways.values() for cause in _causes(report))
    by_hand, library = (_count(ways.get(name)) for name in IMPLEMENTATIONS)
    return CollectiveRow(title, byte_count(some["predicted"]["total_bytes"]), by_hand, library, "; ".join(causes))


def _causes(report: Report) -> list[str]:
    """Why the total departs from the formula. Uneven cuts change who sends, not how much all send together."""
    gap = report["ideal_gap"]
    return [cause for cause in gap["causes"] if cause not in UNEVEN] if gap["bytes"] else []


def _count(report: Report | None) -> Count | None:
    if report is None:
        return None
    payload = report["measured"]["payload_bytes_by_rank"]
    return Count(
        measured="not measured" if payload is None else byte_count(sum(payload)),
        by_rank="not measured" if payload is None else ", ".join(map(thousands, payload)),
        verdict=report["verdict"],
        apart=report["ideal_gap"]["bytes"] != 0,
    )
