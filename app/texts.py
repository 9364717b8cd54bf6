"""What the commands say: results, verification and formulas as text for a terminal, and the same as data for --json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from app.runs.launch import Event
from app.runs.results import Result, explain, number, result_json
from app.runs.verify import Cell, Row
from app.terminal import grouped, table, wrapped
from app.theory import FORMULAS, Formula, Number, plain_text
from app.theory.published import Check
from app.theory.units import BYTES_PER_ELEMENT
from app.theory.volume import Volume
from kernels.spec import STRATEGY_SPECS, Experiment, to_json


def setting(result: Result) -> str:
    """'Tensor parallel: P = 4, L = 2, H = 4, T = 1', with what else was asked for."""
    return _setting(result.P, result.experiment)


def _setting(world_size: int, experiment: Experiment) -> str:
    values = {"P": world_size, "L": experiment.L, "H": experiment.H, "T": experiment.T}
    strategy = STRATEGY_SPECS.get(experiment.strategy)
    if strategy is None or strategy.uses_micro_batches:
        values["m"] = experiment.m
    words = [f"{name} = {value}" for name, value in [*values.items(), *experiment.options.items()]]
    return f"{experiment.strategy if strategy is None else strategy.title}: {', '.join(words)}"


def prediction(result: Result) -> str:
    """Setting, the two predictions side by side, the gap between them."""
    rows = [_volume_row("the lesson’s formula", result.prediction.taught, result),
            _volume_row("as this backend runs it", result.prediction.exact, result)]
    return _paragraphs(setting(result), _volumes(rows, result), _by_rank(result), wrapped(explain(result)))


def measurement(result: Result) -> str:
    """Setting, predictions and measurement, payload and wire by rank, the matrix, the verdict and why."""
    report, environment = result.report, result.environment
    if report is None or environment is None:
        return prediction(result)
    rows = [_volume_row("the lesson’s formula", result.prediction.taught, result),
            _volume_row(f"as {environment.backend} runs it", result.prediction.exact, result)]
    measured = report.payload_bytes_by_rank
    if measured is not None:
        elements = Fraction(sum(measured), BYTES_PER_ELEMENT[report.dtype])
        per_gpu = elements / result.prediction.exact.active_gpus
        rows.append(["measured", grouped(per_gpu), grouped(elements), grouped(sum(measured))])
    how = (f"{report.agreeing} of {report.repetitions} readings agree: {environment.backend} over {environment.transport}, "
           f"torch {environment.torch}, started by {environment.launcher}; a step took {report.step_seconds * 1000:.1f} ms.")
    verdict = f"{result.verdict}: {explain(result)}"
    return _paragraphs(setting(result), _volumes(rows, result), _by_rank(result), _matrix(result), _values(result),
                       wrapped(how), wrapped(verdict))


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _volume_row(name: str, volume: Volume, result: Result) -> list[str]:
    return [name, grouped(volume.mean), grouped(volume.total), grouped(volume.total * result.bytes_per_element)]


def _volumes(rows: Sequence[Sequence[str]], result: Result) -> str:
    in_bytes = f"in bytes ({result.prediction.dtype})"
    return table(rows, ("elements sent", "by each active GPU, mean", "by all GPUs together", in_bytes))


def _by_rank(result: Result) -> str:
    """Bytes sent by each rank: predicted, and where a run was made, measured and on the wire."""
    rows: list[list[str]] = []
    expected = result.prediction.exact.by_rank
    if expected is not None and len(expected) <= 16:
        rows.append(["predicted payload", *(grouped(value * result.bytes_per_element) for value in expected)])
    report = result.report
    if report is not None:
        for name, values in (("measured payload", report.payload_bytes_by_rank), ("on the wire", report.wire_bytes_by_rank),
                             ("handed over in calls", report.calls_payload_bytes_by_rank)):
            if values is not None:
                rows.append([name, *(grouped(value) for value in values)])
    if not rows:
        return ""
    return table(rows, ("bytes sent by rank", *(str(rank) for rank in range(len(rows[0]) - 1))))


def _matrix(result: Result) -> str:
    matrix = None if result.report is None else result.report.payload_matrix
    if matrix is None or len(matrix) == 1:
        return ""
    rows = [[f"from rank {sender}", *("." if receiver == sender else grouped(value) for receiver, value in enumerate(row))]
            for sender, row in enumerate(matrix)]
    return table(rows, ("payload bytes", *(f"to {receiver}" for receiver in range(len(matrix)))))


def _values(result: Result) -> str:
    """What else the strategy measured."""
    values = {} if result.report is None else result.report.values
    return table([[name.replace("_", " "), f"{value:g}"] for name, value in values.items()], ("measured", "")) if values else ""


def progress(event: Event) -> str:
    """One line on what a run does now."""
    facts = event.facts
    phase = str(facts.get("phase", "starting the ranks"))
    strategy = f" {facts['strategy']} in {facts['dtype']}" if "strategy" in facts else ""
    repetition = f", repetition {facts['repetition']} of {facts['repetitions']}" if "repetition" in facts else ""
    return f"{phase}{strategy}{repetition}"


Checks = Mapping[str, Sequence[Check]]


def verification(published: Checks, rows: Sequence[Row], cells: Sequence[Cell]) -> str:
    """Published figures by topic, strategies by row, then each miss on its own line."""
    topics = [[topic, str(sum(check.holds for check in checks)), str(len(checks))] for topic, checks in published.items()]
    runs = [[row.strategy, str(row.cells), str(row.equal), str(row.differs), str(row.inconclusive), str(row.failed),
             ", ".join(row.gaps) or "-"] for row in rows]
    misses = [_published_miss(check) for checks in published.values() for check in checks if not check.holds]
    misses += [_run_miss(cell) for cell in cells if not cell.holds]
    parts = [
        table(topics, ("published figures", "reproduced", "of")),
        table(runs, ("real runs", "cells", "equal", "differs", "inconclusive", "failed", "why backend and formula differ")),
        "\n".join(misses),
        "Everything holds." if not misses else f"{len(misses)} did not hold.",
    ]
    return "\n\n".join(filter(None, parts))


def _published_miss(check: Check) -> str:
    return f"{check.row_id}: {check.formula} gives {float(check.ours):.10g}, not {check.expected:.10g} ({check.source})"


def _run_miss(cell: Cell) -> str:
    if cell.result is None:
        return f"{_setting(cell.P, cell.experiment)}: {cell.failure}"
    return f"{setting(cell.result)}: {cell.result.verdict}. {explain(cell.result)}"


def verification_json(published: Checks, rows: Sequence[Row], cells: Sequence[Cell], holds: bool) -> dict[str, Any]:
    """Everything that was checked, cell by cell."""
    return {
        "holds": holds,
        "published": [_check_json(check) for checks in published.values() for check in checks],
        "strategies": [{"strategy": row.strategy, "cells": row.cells, "equal": row.equal, "differs": row.differs,
                        "inconclusive": row.inconclusive, "failed": row.failed, "causes": list(row.gaps)} for row in rows],
        "reports": [result_json(cell.result) for cell in cells if cell.result is not None],
        "failures": [{"spec": {"P": cell.P, **to_json(cell.experiment)}, "message": cell.failure}
                     for cell in cells if cell.result is None],
    }


def _check_json(check: Check) -> dict[str, Any]:
    return {"id": check.row_id, "formula": check.formula, "expected": check.expected, "ours": plain(check.ours),
            "unit": check.unit, "holds": check.holds, "published": check.is_published, "reason": check.reason,
            "source": check.source}


def formula_list() -> str:
    """Every formula by name, with its arguments and what it gives."""
    rows = [[one.name, ", ".join(symbol.name for symbol in one.symbols), one.title] for one in FORMULAS.values()]
    return table(rows, ("formula", "takes", "gives"), numeric=False)


def formula_card(formula: Formula) -> str:
    """What a formula says and when it holds; how to evaluate it."""
    lines = [formula.title, "", f"  {formula.latex}", ""]
    lines += [wrapped(f"  {symbol.name:<12} {symbol.meaning}{f' ({symbol.unit})' if symbol.unit else ''}", " " * 15)
              for symbol in formula.symbols]
    lines += ["", f"Gives {formula.unit or 'a number'}{f', {formula.scope}' if formula.scope else ''}."]
    lines += [wrapped(f"Assumes: {plain_text(assumption)}", "  ") for assumption in formula.assumptions]
    lines += [wrapped(f"Otherwise: {plain_text(formula.breaks)}", "  ")] if formula.breaks else []
    lines += [wrapped(f"Source: {source.text} {source.url}".rstrip(), "  ") for source in formula.sources]
    example = " ".join(f"{symbol.name}=..." for symbol in formula.symbols)
    return "\n".join([*lines, "", f"Evaluate it with: worldsize formula {formula.name} {example}"])


def formula_value(formula: Formula, value: Number) -> str:
    """The value with its unit and scope."""
    shown = grouped(value) if not isinstance(value, float) else f"{value:,.12g}"
    return " ".join(filter(None, [shown, formula.unit, f"({formula.scope})" if formula.scope else ""]))


def formula_json(formula: Formula) -> dict[str, Any]:
    """A card as data."""
    return {
        "name": formula.name, "title": formula.title, "latex": formula.latex, "unit": formula.unit, "scope": formula.scope,
        "symbols": [{"name": symbol.name, "meaning": symbol.meaning, "unit": symbol.unit} for symbol in formula.symbols],
        "assumptions": [plain_text(text) for text in formula.assumptions], "breaks": plain_text(formula.breaks),
        "sources": [{"text": source.text, "url": source.url} for source in formula.sources],
    }


def plain(value: Number) -> int | float:
    """A value for JSON: exact where it is whole."""
    return value if isinstance(value, float) else number(value)
