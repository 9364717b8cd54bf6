"""Rank reports -> measured beside predicted: the verdict, the gap to the ideal with its causes, and a sentence on both.

The JSON made here is the one that `worldsize predict|measure --json` prints and that /api carries.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from app.theory.predictions import Prediction, predict
from app.theory.units import BYTES_PER_ELEMENT
from app.theory.volume import CAUSE_TEXT, Volume
from kernels.spec import AGREEING_READINGS, HEADER_BYTES, Environment, Experiment, ExperimentReport, RunReport, to_json

DEFAULT_BACKEND = "gloo"


class Verdict(StrEnum):
    """Measured against `backend_predicted`, as integers: in total, and by rank where the backend's cut is known."""

    EQUAL = "equal"
    DIFFERS = "differs"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Result:
    """One experiment: what the theory says, what a run measured (None for a prediction alone), and how they compare."""

    P: int
    experiment: Experiment
    prediction: Prediction
    report: ExperimentReport | None = None
    environment: Environment | None = None

    @property
    def verdict(self) -> Verdict | None:
        """None where nothing ran."""
        if self.report is None:
            return None
        verdict = judge(self.prediction, self.report)
        return Verdict.DIFFERS if verdict is Verdict.EQUAL and self.pairs_beyond_headers else verdict

    @property
    def pairs_beyond_headers(self) -> tuple[tuple[int, int], ...]:
        """(sender, receiver) between which a run sent something that neither payload nor headers account for."""
        if self.report is None or self.environment is None:
            return ()
        return self.report.pairs_beyond_headers(self.environment.backend)

    @property
    def weights_equal(self) -> bool | None:
        """Whether the run ended with the weights of the single process; None where nothing ran."""
        return None if self.report is None else self.report.weights_max_difference <= self.report.weights_tolerance

    @property
    def holds(self) -> bool:
        """The bytes are those predicted and the weights those of the single process."""
        return self.verdict is Verdict.EQUAL and self.weights_equal is True

    @property
    def gap_bytes(self) -> int:
        """Bytes that this backend sends beyond the lesson's formula, all GPUs together; negative where fewer."""
        return int(self.prediction.gap_elements * self.bytes_per_element)

    @property
    def bytes_per_element(self) -> int:
        """Of what is sent: 4, or 2 where gradients travel in bf16."""
        return BYTES_PER_ELEMENT[self.prediction.dtype]


def predicted(world_size: int, experiment: Experiment, backend: str = DEFAULT_BACKEND) -> Result:
    """The prediction alone. Raises ValueError that names the field, its value and what is allowed."""
    return Result(world_size, experiment, _predict(world_size, experiment, backend))


def compare(report: RunReport) -> list[Result]:
    """Every experiment of a run beside its prediction."""
    backend = report.environment.backend
    return [
        Result(report.P, one.experiment, _predict(report.P, one.experiment, backend), one, report.environment)
        for one in report.experiments
    ]


def _predict(world_size: int, experiment: Experiment, backend: str) -> Prediction:
    return predict(experiment.strategy, P=world_size, L=experiment.L, H=experiment.H, T=experiment.T, m=experiment.m,
                   backend=backend, options=experiment.options)


def judge(prediction: Prediction, report: ExperimentReport) -> Verdict:
    """Integers against integers. Readings that did not agree or did not settle prove nothing either way."""
    measured = report.payload_bytes_by_rank
    if measured is None or not report.settled or not AGREEING_READINGS <= report.repetitions == report.agreeing:
        return Verdict.INCONCLUSIVE
    size = BYTES_PER_ELEMENT[report.dtype]
    total_holds = sum(measured) == prediction.exact.total * size
    by_rank = prediction.exact.by_rank
    ranks_hold = by_rank is None or [Fraction(value) for value in measured] == [value * size for value in by_rank]
    return Verdict.EQUAL if total_holds and ranks_hold else Verdict.DIFFERS


def explain(result: Result) -> str:
    """Whole sentences: the verdict first, then why the backend's figure is not the lesson's, then the weights."""
    return " ".join(filter(None, (_verdict_sentence(result), _gap_sentence(result), _weights_sentence(result))))


def _verdict_sentence(result: Result) -> str:
    report, verdict = result.report, result.verdict
    if report is None:
        return ""
    if verdict is Verdict.EQUAL:
        total = _byte_total(result)
        return f"Measured on the sockets: {total:,} bytes, exactly as predicted for this backend."
    measured = report.payload_bytes_by_rank
    if measured is None:
        return f"No verdict: {report.note}."
    if verdict is Verdict.INCONCLUSIVE:
        why = ("bytes went on moving between steps, so no window could be closed" if not report.settled else
               f"only {report.agreeing} of {report.repetitions} readings agreed, and all must"
               if report.agreeing < report.repetitions else
               f"only {report.repetitions} readings were taken, and {AGREEING_READINGS} must agree")
        return f"No verdict: {why}."
    payload = f"Measured {sum(measured):,} bytes, predicted {_byte_total(result):,}{_where_ranks_differ(result)}."
    return " ".join(filter(None, (payload, _beyond_headers_sentence(result))))


def _beyond_headers_sentence(result: Result) -> str:
    if not result.pairs_beyond_headers or result.environment is None:
        return ""
    who = "; ".join(f"rank {sender} to rank {receiver}" for sender, receiver in result.pairs_beyond_headers)
    backend = result.environment.backend
    return (f"Something else was sent as well ({who}): on the wire, what is not payload must be whole headers of "
            f"{HEADER_BYTES[backend]} bytes on {backend}, and it is not. What is as long in {result.prediction.dtype} as in a "
            "wider type, such as a tensor of integers, is in neither.")


def _where_ranks_differ(result: Result) -> str:
    measured = result.report.payload_bytes_by_rank if result.report is not None else None
    expected = result.prediction.exact.by_rank
    if measured is None or expected is None:
        return ""
    wanted = [int(value * result.bytes_per_element) for value in expected]
    wrong = [f"rank {rank} sent {got:,}, not {want:,}"
             for rank, (got, want) in enumerate(zip(measured, wanted, strict=True)) if got != want]
    return f" ({'; '.join(wrong)})" if wrong else ""


def _gap_sentence(result: Result) -> str:
    causes = " ".join(CAUSE_TEXT[cause] for cause in result.prediction.causes)
    if result.gap_bytes == 0:
        return causes
    direction = "more" if result.gap_bytes > 0 else "less"
    gap = f"This backend sends {abs(result.gap_bytes):,} bytes {direction} than the lesson’s formula says, all GPUs together."
    return f"{gap} {causes}".strip()


def _weights_sentence(result: Result) -> str:
    if result.report is None or result.weights_equal:
        return ""
    return (f"The weights differ from the single process’s by {result.report.weights_max_difference:.2g}, more than "
            f"{result.report.weights_tolerance:.0e}: this run did not train the same model.")


def _byte_total(result: Result) -> int:
    return int(result.prediction.exact.total * result.bytes_per_element)


def result_json(result: Result) -> dict[str, Any]:
    """One row of the schema; `measured`, `verdict` and `environment` are null where nothing ran."""
    return {
        "strategy": result.experiment.strategy,
        "spec": {"P": result.P, **to_json(result.experiment)},
        "predicted": volume_json(result.prediction.taught, result.prediction.dtype),
        "backend_predicted": volume_json(result.prediction.exact, result.prediction.dtype),
        "measured": None if result.report is None else _measured_json(result.report, result.environment),
        "verdict": result.verdict,
        "ideal_gap": {"bytes": result.gap_bytes, "causes": [str(cause) for cause in result.prediction.causes]},
        "explanation": explain(result),
        "environment": None if result.environment is None else asdict(result.environment),
    }


def volume_json(volume: Volume, dtype: str) -> dict[str, Any]:
    """V of the schema. `by_rank` and `max` are null where a formula does not say who sends."""
    by_rank = None if volume.by_rank is None else [number(value) for value in volume.by_rank]
    return {
        "per_gpu_elements": {"mean": number(volume.mean), "max": None if volume.max is None else number(volume.max),
                             "by_rank": by_rank},
        "total_elements": number(volume.total),
        "total_bytes": number(volume.total * BYTES_PER_ELEMENT[dtype]),
        "dtype": dtype,
    }


def number(value: Fraction | int) -> int | float:
    """An integer where the value is one: JSON has no fractions."""
    fraction = Fraction(value)
    return fraction.numerator if fraction.denominator == 1 else float(fraction)


def _measured_json(report: ExperimentReport, environment: Environment | None) -> dict[str, Any]:
    matrix = report.payload_matrix
    return {
        "payload_bytes_by_rank": _listed(report.payload_bytes_by_rank),
        "wire_bytes_by_rank": _listed(report.wire_bytes_by_rank),
        "matrix": None if matrix is None else [list(row) for row in matrix],
        "dtype": report.dtype,
        "settled": report.settled,
        "repetitions": report.repetitions,
        "agreeing": report.agreeing,
        "transport": "" if environment is None else environment.transport,
        "calls_payload_bytes_by_rank": _listed(report.calls_payload_bytes_by_rank),
        "calls_by_rank": None if report.calls_by_rank is None else [dict(calls) for calls in report.calls_by_rank],
        "memory_by_rank": [asdict(memory) for memory in report.memory_by_rank],
        "step_seconds": report.step_seconds,
        "timeline": [dict(vars(interval)) for interval in report.timeline],  # thousands: asdict takes ten times as long
        "values": dict(report.values),
        "weights": {"max_difference": _finite(report.weights_max_difference), "tolerance": report.weights_tolerance},
        "note": report.note,
    }


def _finite(value: float) -> float | None:
    """JSON knows neither NaN nor infinity."""
    return value if math.isfinite(value) else None


def _listed(values: tuple[int, ...] | None) -> list[int] | None:
    return None if values is None else list(values)
