"""What a run keeps as JSON, read back. A row may be another version's: whatever is read of one is read here, and guarded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row

from app.errors import RunUnreadable
from app.runs import results
from kernels.spec import STRATEGY_SPECS, RunReport, RunSpec, report_from_json, spec_from_json

# The shape of spec, progress, failure and report in a row. Whoever changes one gives it the next number and reads the old one
# here, or its rows become unreadable: the tests hold a row of each number.
FORMAT = 1


@dataclass(frozen=True)
class Progress:
    """How far a running run is. An experiment is measured in two dtypes, one after the other: `half` says in which of them
    it is, 0 or 1. `experiment` counts from 0, `repetition` from 1.
    """

    phase: str
    experiments: int
    experiment: int = 0
    strategy: str = ""
    dtype: str = ""
    half: int = 0
    repetition: int = 0
    repetitions: int = 0

    @property
    def fraction(self) -> float:
        """From 0 to 1, for a progress bar: it only grows while a run goes on."""
        if self.phase not in ("warming up", "measuring"):
            return 0.0
        within = (self.repetition / (self.repetitions + 1)) if self.repetitions else 0.0
        return (2 * self.experiment + self.half + within) / (2 * self.experiments)


@dataclass(frozen=True)
class Failure:
    """Why a run ended without a result, in plain words; `rank` is None where no single rank is to blame."""

    message: str
    rank: int | None = None
    exit: str = ""
    phase: str = ""
    log_tail: str = ""


UNREADABLE = Failure(
    "What is stored of this run was written by another version of World Size, and this one cannot read it. "
    "You can start the run again from its lesson.",
    exit="unreadable",
)


@dataclass(frozen=True)
class Brought:
    """What a run that is done has brought: the report, and its rows of the schema that /api carries."""

    report: RunReport
    results: tuple[Mapping[str, Any], ...]


def spec_in(row: Row[Any]) -> RunSpec:
    """What was asked for. Raises RunUnreadable."""
    try:
        with _another_shape(row):
            spec = spec_from_json(row.spec)
            if not spec.experiments or not {one.strategy for one in spec.experiments} <= set(STRATEGY_SPECS):
                raise ValueError(f"experiments = {spec.experiments}: must be of strategies that are known")
            return spec
    except _AnotherShape as error:
        raise RunUnreadable(row.id) from error


def progress_in(row: Row[Any], spec: RunSpec) -> Progress:
    """How far it is; as at its start where nothing can be read of that."""
    try:
        with _another_shape(row):
            progress = Progress(**row.progress)
            if progress.experiments == len(spec.experiments) > progress.experiment:
                return progress
    except _AnotherShape:
        pass
    return Progress("launching", len(spec.experiments))


def failure_in(row: Row[Any]) -> Failure | None:
    """Why it has no result."""
    try:
        with _another_shape(row):
            return None if row.failure is None else Failure(**row.failure)
    except _AnotherShape:
        return UNREADABLE


def brought_by(row: Row[Any]) -> Brought | None:
    """What a run that is done has measured, beside what is predicted now; None where that cannot be read."""
    try:
        with _another_shape(row):
            report = _report(row.report)
            return Brought(report, tuple(results.result_json(one) for one in results.compare(report)))
    except _AnotherShape:
        return None


class _AnotherShape(Exception):
    """What is stored cannot be read as what it should be."""


@contextmanager
def _another_shape(row: Row[Any]) -> Iterator[None]:
    if row.format != FORMAT:
        raise _AnotherShape(f"format {row.format}, and {FORMAT} is read here")
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise _AnotherShape(repr(error)) from error


def _report(stored: Mapping[str, Any]) -> RunReport:
    """Weights that overflowed are stored as null, for JSON has no NaN."""
    experiments = [
        {**one, "weights_max_difference": math.nan if one["weights_max_difference"] is None else one["weights_max_difference"]}
        for one in stored["experiments"]
    ]
    return report_from_json({**stored, "experiments": experiments})
