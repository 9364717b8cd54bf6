"""Measured bytes are predicted bytes, as integers: the heart of the project."""

from __future__ import annotations

import json

import pytest

from app.runs.launch import LocalLauncher
from app.runs.results import Verdict, explain
from app.runs.verify import grid, quick
from kernels.spec import MAX_WORLD_SIZE, STRATEGY_SPECS, Experiment, RunSpec, is_installed, report_from_json, to_json
from tests.runs.launchers import measure, measure_one

pytestmark = pytest.mark.torchrun


def payload(launcher: LocalLauncher, world_size: int, strategy: str, **values: int) -> tuple[int, ...] | None:
    result = measure_one(launcher, world_size, Experiment(strategy, **values))
    assert result.verdict is Verdict.EQUAL, explain(result)
    assert result.report is not None
    return result.report.payload_bytes_by_rank


def test_data_parallel_sends_192_bytes_from_each_of_four_ranks(launcher: LocalLauncher) -> None:
    assert payload(launcher, 4, "data_parallel", L=2, H=4) == (192, 192, 192, 192)


def test_tensor_parallel_sends_384_bytes_in_all_unevenly_cut(launcher: LocalLauncher) -> None:
    assert payload(launcher, 4, "tensor_parallel", L=2, H=4) == (96, 64, 96, 128)


def test_pipeline_sends_eight_elements_in_all_between_two_neighbours(launcher: LocalLauncher) -> None:
    assert payload(launcher, 4, "pipeline_gpipe", L=2, H=4) == (16, 16, 0, 0)


def test_data_parallel_on_eight_ranks_sends_56_elements_from_each(launcher: LocalLauncher) -> None:
    assert payload(launcher, 8, "data_parallel") == (56 * 4,) * 8


def test_every_micro_batch_hands_over_once_each_way(launcher: LocalLauncher) -> None:
    assert sum(payload(launcher, 4, "pipeline_1f1b", L=4, H=4, m=3) or ()) == 2 * 3 * 4 * 3 * 4


@pytest.mark.parametrize("world_size", range(1, MAX_WORLD_SIZE + 1))
def test_every_strategy_meets_its_prediction_and_a_single_process_weights(launcher: LocalLauncher, world_size: int) -> None:
    """A part of the grid, the same every time; `worldsize verify` runs all of it."""
    cells = quick(grid(world_size), seed=0, world_size=world_size)
    for result in measure(launcher, world_size, *cells):
        assert result.holds, f"P = {world_size}, {result.experiment}: {explain(result)}"


def test_every_strategy_is_measured_somewhere_in_the_grid() -> None:
    assert {cell.strategy for size in range(1, MAX_WORLD_SIZE + 1) for cell in grid(size)} == {
        name for name in STRATEGY_SPECS if is_installed(name)}


def test_the_largest_toy_still_sends_as_many_messages_in_both_dtypes(launcher: LocalLauncher) -> None:
    largest = {"L": 16, "H": 64, "T": 64}
    experiments = [Experiment(strategy, **largest) for strategy in ("data_parallel", "ddp", "tensor_parallel")]
    experiments.append(Experiment("ring_all_reduce", options={"implementation": "library", "elements": 262_144}))
    for result in measure(launcher, 2, *experiments):
        assert result.holds, f"{result.experiment}: {explain(result)}"


def test_the_library_reduce_scatter_on_gloo_sends_as_much_as_its_all_reduce(launcher: LocalLauncher) -> None:
    both = [Experiment("ring_all_reduce", options={"collective": collective, "implementation": "library"})
            for collective in ("all_reduce", "reduce_scatter")]
    all_reduce, reduce_scatter = measure(launcher, 4, *both)
    assert reduce_scatter.verdict is Verdict.EQUAL
    assert reduce_scatter.report is not None
    assert all_reduce.report is not None
    assert reduce_scatter.report.payload_bytes_by_rank == all_reduce.report.payload_bytes_by_rank
    assert "reduce_scatter_as_all_reduce" in reduce_scatter.prediction.causes
    assert reduce_scatter.gap_bytes == 3 * 32 * 4  # half of an all-reduce's 2 (P-1) s too many


def test_a_report_survives_json_unchanged(launcher: LocalLauncher) -> None:
    report = launcher.run(RunSpec(2, (Experiment("data_parallel"),), time_limit_seconds=600.0))
    assert report_from_json(json.loads(json.dumps(to_json(report)))) == report
