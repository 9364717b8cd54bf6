"""Reports beside predictions: the verdict, the gap, the sentences and the JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from app.runs.results import Result, Verdict, compare, explain, judge, predicted, result_json
from app.theory import predict
from kernels.spec import Environment, Experiment, ExperimentReport, MemoryReport, RunReport

ENVIRONMENT = Environment(torch="2.13.0", python="3.11", backend="gloo", transport="TCP sockets", launcher="launch host",
                          platform="Linux x86_64", cpu_count=2, gpu_count=0, started_at="2026-11-29T00:00:00+00:00")


def measured(experiment: Experiment, matrix: tuple[tuple[int, ...], ...], **changes: object) -> Result:
    """The result of a run that measured this payload matrix."""
    report = ExperimentReport(
        experiment=experiment, dtype="fp32", settled=True, repetitions=3, agreeing=3, payload_matrix=matrix, wire_matrix=matrix,
        calls_payload_bytes_by_rank=None, calls_by_rank=None, memory_by_rank=(MemoryReport(0, 0, 0, 0),) * len(matrix),
        timeline=(), step_seconds=0.001, weights_max_difference=0.0, weights_tolerance=1e-12,
    )
    report = replace(report, **changes)  # type: ignore[arg-type]
    return compare(RunReport(len(matrix), (report,), ENVIRONMENT, {"total": 1.0}))[0]


DATA_ON_TWO = Experiment("data_parallel")  # 32 elements, two ranks: each sends 32 elements, 128 bytes
RIGHT = ((0, 128), (128, 0))


def test_the_predicted_bytes_are_equal() -> None:
    result = measured(DATA_ON_TWO, RIGHT)
    assert result.verdict is Verdict.EQUAL
    assert result.holds
    assert explain(result).startswith("Measured on the sockets: 256 bytes")


def test_one_byte_too_many_differs_and_the_rank_is_named() -> None:
    result = measured(DATA_ON_TWO, ((0, 129), (128, 0)))
    assert result.verdict is Verdict.DIFFERS
    assert "rank 0 sent 129, not 128" in explain(result)


def test_the_right_total_from_the_wrong_ranks_differs() -> None:
    assert measured(DATA_ON_TWO, ((0, 124), (132, 0))).verdict is Verdict.DIFFERS


def test_where_the_backends_cut_is_not_known_the_total_decides_alone() -> None:
    elsewhere = measured(DATA_ON_TWO, ((0, 124), (132, 0))).report
    assert elsewhere is not None
    assert judge(predict("data_parallel", P=2, backend="nccl"), elsewhere) is Verdict.EQUAL
    assert judge(predict("data_parallel", P=2, L=3, backend="nccl"), elsewhere) is Verdict.DIFFERS


@pytest.mark.parametrize("change", [{"settled": False}, {"agreeing": 2}, {"repetitions": 4},
                                    {"repetitions": 2, "agreeing": 2}, {"payload_matrix": None}])
def test_readings_that_prove_nothing_are_inconclusive(change: dict[str, object]) -> None:
    assert measured(DATA_ON_TWO, RIGHT, **change).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(("wire", "verdict"), [
    (((0, 128 + 3 * 48), (128, 0)), Verdict.EQUAL),
    (((0, 128 + 3 * 48 + 20), (128, 0)), Verdict.DIFFERS),
    (((0, 128), (128, 1)), Verdict.DIFFERS),
])
def test_what_is_not_payload_must_be_whole_headers(wire: tuple[tuple[int, ...], ...], verdict: Verdict) -> None:
    result = measured(DATA_ON_TWO, RIGHT, wire_matrix=wire)
    assert result.verdict is verdict
    assert ("Something else was sent as well" in explain(result)) is (verdict is Verdict.DIFFERS)


def test_where_headers_are_not_known_nothing_is_made_of_them() -> None:
    odd = measured(DATA_ON_TWO, RIGHT, wire_matrix=((0, 129), (128, 0)))
    assert odd.report is not None
    assert odd.report.pairs_beyond_headers("gloo") == ((0, 1),)
    assert odd.report.pairs_beyond_headers("nccl") == ()


def test_weights_beyond_their_tolerance_do_not_hold_even_where_the_bytes_do() -> None:
    result = measured(DATA_ON_TWO, RIGHT, weights_max_difference=1e-6)
    assert result.verdict is Verdict.EQUAL
    assert not result.holds


def test_a_nan_in_the_weights_does_not_hold() -> None:
    result = measured(DATA_ON_TWO, RIGHT, weights_max_difference=float("nan"))
    assert not result.holds
    assert json.loads(json.dumps(result_json(result), allow_nan=False))["measured"]["weights"]["max_difference"] is None


@pytest.mark.parametrize(("world_size", "experiment", "gap_bytes", "cause"), [
    (8, Experiment("tensor_parallel"), -512, "idle_gpus"),
    (4, Experiment("pipeline_gpipe", L=8), -128, "local_boundaries"),
    (4, Experiment("ring_all_reduce", options={"collective": "reduce_scatter", "implementation": "library"}), 384,
     "reduce_scatter_as_all_reduce"),
])
def test_the_gap_to_the_lesson_is_signed_and_its_cause_is_named(
        world_size: int, experiment: Experiment, gap_bytes: int, cause: str) -> None:
    gap = result_json(predicted(world_size, experiment))["ideal_gap"]
    assert gap["bytes"] == gap_bytes
    assert cause in gap["causes"]


SCATTERED = Experiment("ring_all_reduce", options={"collective": "reduce_scatter", "implementation": "library"})


@pytest.mark.parametrize(("matrix", "change", "verdict"), [
    (RIGHT, {}, "Measured on the sockets"), (((0, 129), (128, 0)), {}, "Measured 257 bytes, predicted 256"),
    (RIGHT, {"settled": False}, "No verdict"), (RIGHT, {"payload_matrix": None}, "No verdict"),
])
def test_the_gap_is_the_backends_whatever_was_measured(
        matrix: tuple[tuple[int, ...], ...], change: dict[str, object], verdict: str) -> None:
    text = explain(measured(SCATTERED, matrix, **change))
    assert text.startswith(verdict)
    assert " This backend sends 128 bytes more than the lesson’s formula says, all GPUs together. " in text


def test_json_of_a_prediction_has_the_keys_of_a_measurement_with_nothing_measured() -> None:
    alone = result_json(predicted(2, DATA_ON_TWO))
    run = result_json(measured(DATA_ON_TWO, RIGHT))
    assert set(alone) == set(run)
    assert (alone["measured"], alone["verdict"], alone["environment"]) == (None, None, None)
    assert run["measured"]["payload_bytes_by_rank"] == [128, 128]
    assert json.loads(json.dumps(run)) == run


def test_volumes_in_json_are_integers_where_they_are_whole() -> None:
    volume = result_json(predicted(3, DATA_ON_TWO))["backend_predicted"]
    assert volume["per_gpu_elements"] == {"mean": 128 / 3, "max": 44, "by_rank": [44, 40, 44]}
    assert (volume["total_elements"], volume["total_bytes"]) == (128, 512)
    assert isinstance(volume["total_elements"], int)


def test_a_formula_that_does_not_say_who_sends_leaves_the_ranks_open() -> None:
    per_gpu = result_json(predicted(4, Experiment("pipeline_gpipe", L=8)))["predicted"]["per_gpu_elements"]
    assert per_gpu == {"mean": 14, "max": None, "by_rank": None}
