"""A recorded report as the page draws it: the verdict line, bars, the matrix and the wire."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.course.model import Experiment
from app.web.experiments import command, result_view
from app.web.run_views import recorded_view
from kernels import spec

ENVIRONMENT = {"torch": "2.13.0", "python": "3.11.7", "backend": "gloo", "transport": "TCP sockets", "launcher": "launch host",
               "platform": "Linux x86_64", "cpu_count": 2, "gpu_count": 0, "started_at": "2026-11-29T15:16:13+00:00"}


def volume(by_rank: list[float] | None, total: float, mean: float) -> dict[str, Any]:
    return {"per_gpu_elements": {"mean": mean, "max": None, "by_rank": by_rank}, "total_elements": total,
            "total_bytes": total * 4, "dtype": "fp32"}


def measured(payload: list[int] | None) -> dict[str, Any]:
    """Ten bytes on the wire for each of payload; rank r sends to rank r + 1."""
    matrix, wire = None, None
    if payload is not None:
        size = len(payload)
        matrix = [[sent * (receiver == (rank + 1) % size) for receiver in range(size)] for rank, sent in enumerate(payload)]
        wire = [sent * 10 for sent in payload]
    return {"payload_bytes_by_rank": payload, "wire_bytes_by_rank": wire, "matrix": matrix, "agreeing": 3, "repetitions": 3}


def report(
    strategy: str, taught: list[float], exact: list[float], payload: list[int] | None, verdict: str = "equal"
) -> dict[str, Any]:
    """Elements by rank as stated and as predicted for the backend, bytes by rank as measured."""
    size = len(exact)
    active = [count for count in exact if count] or [0]
    return {
        "strategy": strategy, "spec": {"P": size, **spec.to_json(spec.Experiment(strategy))},
        "predicted": volume(taught, sum(taught), sum(taught) / size),
        "backend_predicted": volume(exact, sum(exact), sum(exact) / len(active)),
        "measured": measured(payload),
        "verdict": verdict, "ideal_gap": {"bytes": int((sum(exact) - sum(taught)) * 4), "causes": []}, "explanation": "Why.",
        "environment": ENVIRONMENT,
    }


EQUAL = report("data_parallel", [48] * 4, [48] * 4, [192] * 4)
UNEVEN = report("tensor_parallel", [24] * 4, [24, 16, 24, 32], [96, 64, 96, 128])
PIPELINE = report("pipeline_gpipe", [4, 4, 0, 0], [4, 4, 0, 0], [16, 16, 0, 0])
GAP = report("ring_all_reduce", [24] * 4, [48] * 4, [192] * 4)
DIFFERS = report("data_parallel", [48] * 4, [48] * 4, [192, 192, 192, 240], verdict="differs")
UNREADABLE = report("data_parallel", [48] * 4, [48] * 4, None, verdict="inconclusive")


def line(one: dict[str, Any]) -> list[tuple[str, str]]:
    return [(term.relation, term.number) for term in result_view(one).terms]


def test_where_all_gpus_send_the_same_one_gpu_s_number_says_it_all() -> None:
    assert line(EQUAL) == [("", "192"), ("equal", "192"), ("equal", "192")]
    assert result_view(EQUAL).finding == "Equal, to the byte, on every GPU."
    assert result_view(EQUAL).terms[0].meaning == "the formula, each GPU"


def test_where_they_differ_the_line_counts_all_gpus_together() -> None:
    assert line(UNEVEN) == [("", "384"), ("equal", "384"), ("equal", "384")]
    assert result_view(UNEVEN).terms[0].meaning == "the formula, all GPUs together"
    assert line(PIPELINE) == [("", "32"), ("equal", "32"), ("equal", "32")]


def test_a_backend_that_departs_from_the_formula_breaks_the_line_there() -> None:
    assert line(GAP) == [("", "96"), ("differs", "192"), ("equal", "192")]
    assert [bar.predicted_width for bar in result_view(GAP).bars] == ["49.00%"] * 4
    assert "384 B away from the formula" in result_view(GAP).finding


def test_a_measurement_that_departs_from_the_prediction_breaks_the_line_at_its_end() -> None:
    assert line(DIFFERS) == [("", "768"), ("equal", "768"), ("differs", "816")]
    assert result_view(DIFFERS).bars[3].measured_width == "98.00%"
    assert result_view(DIFFERS).bars[3].predicted_width == "78.40%"


def test_an_idle_gpu_is_called_idle() -> None:
    assert [bar.idle for bar in result_view(PIPELINE).bars] == [False, False, True, True]


def test_a_gpu_that_computes_alone_is_not_called_idle() -> None:
    alone = report("data_parallel", [0], [0], [0])
    assert [(bar.idle, bar.text) for bar in result_view(alone).bars] == [(False, "0 B")]


def test_the_note_says_which_prediction_is_outlined() -> None:
    assert result_view(EQUAL).bars_note.startswith("An outline is what was predicted for gloo; ")
    assert result_view(GAP).bars_note.startswith("An outline is what the formula says; ")


def test_sockets_that_cannot_be_read_leave_no_bars_and_no_wire() -> None:
    view = result_view(UNREADABLE)
    assert (view.bars, view.matrix, view.wire, view.measured_total) == ((), (), None, "not measured")
    assert line(UNREADABLE) == [("", "768"), ("equal", "768")]


def with_measured(**changes: Any) -> dict[str, Any]:
    return {**EQUAL, "verdict": "inconclusive", "measured": {**EQUAL["measured"], **changes}}


@pytest.mark.parametrize("noisy", [
    report("data_parallel", [48] * 4, [48] * 4, [192, 192, -1813, 192], verdict="inconclusive"),
    with_measured(wire_bytes_by_rank=[1920, 100, 1920, 1920]),
    with_measured(matrix=[[0, 500, -308, 0], *EQUAL["measured"]["matrix"][1:]]),
], ids=["less than nothing", "more than the wire", "less than nothing to one rank"])
def test_bytes_that_cannot_be_are_not_drawn(noisy: dict[str, Any]) -> None:
    """Differences of two readings that never settled."""
    view = result_view(noisy)
    assert (view.bars, view.matrix, view.wire, view.measured_total) == ((), (), None, "not measured")
    assert (view.by_rank, view.wire_total, view.standing) == ("not measured", "not measured", "no verdict")


def test_the_matrix_shades_by_share_and_leaves_itself_empty() -> None:
    matrix = result_view(UNEVEN).matrix
    assert [row[(rank + 1) % 4].shade for rank, row in enumerate(matrix)] == ["q8", "q5", "q8", "q10"]
    assert {matrix[rank][rank].shade for rank in range(4)} == {"self"}
    assert matrix[0][2] == dataclasses.replace(matrix[0][2], shade="", text="0")


def against_the_count(size: int, senders: int) -> dict[str, Any]:
    """Of the GPUs that send, each sends to the one before it."""
    matrix = [[32 * (rank < senders and to == (rank - 1) % senders) for to in range(size)] for rank in range(size)]
    return report("tensor_parallel", [8] * size, [8] * senders + [0] * (size - senders), [sum(row) for row in matrix]) | {
        "measured": {**measured([32] * size), "payload_bytes_by_rank": [sum(row) for row in matrix], "matrix": matrix}}


def test_a_ring_against_the_count_is_told_below_the_matrix() -> None:
    """With idle GPUs beside it as well; between two GPUs there is no left."""
    told = "gloo’s ring runs to the left: each GPU sends to the one before it"
    assert result_view(against_the_count(4, 4)).matrix_note.startswith(told)
    assert result_view(against_the_count(6, 4)).matrix_note.startswith(told)
    assert [result_view(one).matrix_note for one in (against_the_count(2, 2), EQUAL, PIPELINE, UNREADABLE)] == [""] * 4


def test_the_wire_is_payload_and_protocol() -> None:
    wire = result_view(EQUAL).wire
    assert wire is not None
    assert (wire.payload_width, wire.payload_text, wire.protocol_text) == (82.0, "768 payload", "6,912 protocol")


@pytest.mark.parametrize(("run", "expected"), [
    (spec.Experiment("data_parallel"), "worldsize measure data_parallel -P 4 -L 2 -H 4 -T 1"),
    (spec.Experiment("pipeline_gpipe", m=3), "worldsize measure pipeline_gpipe -P 4 -L 2 -H 4 -T 1 -m 3"),
    (spec.Experiment("ddp", options={"accumulation": 2}), "worldsize measure ddp -P 4 -L 2 -H 4 -T 1 --accumulation 2"),
    (spec.Experiment("ddp", options={"bucket_bytes": 64}), "worldsize measure ddp -P 4 -L 2 -H 4 -T 1 --bucket-bytes 64"),
])
def test_the_command_repeats_the_measurement(run: spec.Experiment, expected: str) -> None:
    assert command(4, run) == expected


def experiment(*reports: dict[str, Any]) -> Experiment:
    strategies = tuple(spec.Experiment(one["strategy"]) for one in reports)
    return Experiment("cuts", "The cuts", "Counted.", None, 4, strategies, reports)


def test_a_recorded_run_says_when_and_where() -> None:
    recorded = recorded_view(experiment(EQUAL, UNEVEN, PIPELINE))
    assert recorded is not None
    assert recorded.sentence.startswith(
        "Recorded on 29 November 2026, on a machine with 2 CPU cores: PyTorch 2.13.0, gloo over TCP sockets")
    assert recorded.results is not None
    assert len(recorded.results.strategies) == 3
    assert recorded.results.tabs


def test_runs_of_one_strategy_are_told_apart_by_what_sets_them_apart() -> None:
    once = spec.Experiment("ddp", options={"accumulation": 4, "sync_when": "once"})
    always = spec.Experiment("ddp", options={"accumulation": 4, "sync_when": "every_micro_step"})
    other = spec.Experiment("data_parallel", options={"accumulation": 4})
    reports = tuple(
        {**EQUAL, "strategy": run.strategy, "spec": {"P": 4, **spec.to_json(run)}} for run in (other, always, once)
    )
    recorded = recorded_view(Experiment("syncs", "Syncs", "Counted.", None, 4, (once, always, other), reports))
    assert recorded is not None
    assert recorded.results is not None
    assert [result.title for result in recorded.results.strategies] == [
        "Data parallel (DDP), once", "Data parallel (DDP), every micro step", "Data parallel"]


def test_an_experiment_without_a_recorded_run_has_none_to_show() -> None:
    assert recorded_view(Experiment("cuts", "The cuts", "Counted.", None, 4, (spec.Experiment("data_parallel"),))) is None


def test_a_gap_is_explained_by_its_named_cause() -> None:
    view = result_view({**GAP, "ideal_gap": {"bytes": 384, "causes": ["reduce_scatter_as_all_reduce"]}})
    assert [cause.name for cause in view.causes] == ["Reduce-scatter as all-reduce"]
    assert view.causes[0].text.startswith("PyTorch’s gloo backend runs a whole all-reduce")


def test_the_flagship_ships_a_run_of_all_three_cuts(client: TestClient) -> None:
    page = client.get("/lessons/split-three-ways").text
    assert page.count('class="verdict"') == 3
    assert "Recorded on" in page
