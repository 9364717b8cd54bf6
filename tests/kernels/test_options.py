"""What options change in real runs: traffic once or A times, half the bytes in bf16, buckets in flight, split all-reduces."""

from __future__ import annotations

import pytest

from app.runs.launch import LocalLauncher
from app.runs.results import Result, Verdict, explain, result_json
from app.runs.verify import OPTION_SHAPES, grid
from kernels.spec import Experiment, ExperimentReport, OptionValue, RunSpec
from tests.runs.launchers import measure, measure_one

pytestmark = pytest.mark.torchrun

DEEP = {"L": 16, "H": 64, "T": 64}  # the largest toy: its backward lasts long enough to see what else goes on
FOUR_LAYERS = 4 * 64 * 64 * 4


def held(results: list[Result]) -> list[Result]:
    for result in results:
        assert result.holds, f"P = {result.P}, {result.experiment}: {explain(result)}"
    return results


def report_of(result: Result) -> ExperimentReport:
    assert result.report is not None
    return result.report


def saved_bytes(result: Result) -> int:
    return report_of(result).memory_by_rank[0].saved_for_backward_bytes


def total_bytes(result: Result) -> int:
    return sum(report_of(result).payload_bytes_by_rank or ())


@pytest.mark.parametrize(("world_size", "shape"), [(2, OPTION_SHAPES[1]), (3, OPTION_SHAPES[2]), (4, OPTION_SHAPES[0])])
def test_every_option_meets_its_prediction_and_a_single_process_weights(
        launcher: LocalLauncher, world_size: int, shape: tuple[int, int, int]) -> None:
    settings = [one for one in grid(world_size) if one.options and shape == (one.L, one.H, one.T)]
    assert {one.strategy for one in settings} >= {"data_parallel", "ddp", "pipeline_torch"}
    held(measure(launcher, world_size, *settings))


@pytest.mark.parametrize("strategy", ["data_parallel", "ddp"])
def test_four_micro_steps_measure_one_sync_or_four(launcher: LocalLauncher, strategy: str) -> None:
    def steps(micro_steps: int, sync_when: str) -> Experiment:
        return Experiment(strategy, options={"accumulation": micro_steps, "sync_when": sync_when})

    one, once, every = held(measure(launcher, 2, steps(1, "once"), steps(4, "once"), steps(4, "every_micro_step")))
    assert total_bytes(once) == total_bytes(one)
    assert total_bytes(every) == 4 * total_bytes(one)


def test_accumulation_keeps_no_more_activations_than_one_micro_step(launcher: LocalLauncher) -> None:
    experiments = [Experiment(strategy, L=3, H=8, T=4, options={"accumulation": micro_steps})
                   for strategy in ("data_parallel", "ddp") for micro_steps in (1, 4)]
    results = held(measure(launcher, 2, *experiments))
    assert {saved_bytes(result) for result in results} == {(3 + 1) * 4 * 8 * 4}  # three inputs and the error, T x H in fp32


@pytest.mark.parametrize("strategy", ["data_parallel", "ddp"])
def test_bf16_gradients_measure_half_the_bytes(launcher: LocalLauncher, strategy: str) -> None:
    both = [Experiment(strategy, options={"comm_dtype": dtype}) for dtype in ("fp32", "bf16")]
    fp32, bf16 = held(measure(launcher, 3, *both))
    assert 2 * total_bytes(bf16) == total_bytes(fp32)
    assert report_of(bf16).weights_max_difference > report_of(fp32).weights_max_difference  # rounding is seen, and small
    assert result_json(bf16)["backend_predicted"]["dtype"] == report_of(bf16).dtype == "bf16"
    assert result_json(bf16)["backend_predicted"]["total_bytes"] == total_bytes(bf16)


def test_ddp_reduces_buckets_while_backward_goes_on(launcher: LocalLauncher) -> None:
    [result] = held([measure_one(launcher, 2, Experiment("ddp", **DEEP, options={"bucket_bytes": FOUR_LAYERS}))])
    for rank in range(2):
        mine = [interval for interval in report_of(result).timeline if interval.rank == rank]
        layers = [interval for interval in mine if interval.name.startswith("backward of layer")]
        reduced = [interval for interval in mine if interval.name.startswith("all_reduce of bucket")]
        assert [interval.name for interval in layers] == [f"backward of layer {index}" for index in reversed(range(16))]
        assert sorted(interval.name for interval in reduced) == [f"all_reduce of bucket {index}" for index in range(4)]
        assert sum(interval.start_seconds < layers[-1].end_seconds for interval in reduced) >= 3  # all but the last
        assert all(interval.end_seconds > interval.start_seconds for interval in mine)


def test_by_hand_the_all_reduces_wait_for_backward(launcher: LocalLauncher) -> None:
    [result] = held([measure_one(launcher, 2, Experiment("data_parallel", L=4, options={"sync": "per_parameter"}))])
    names = [interval.name for interval in report_of(result).timeline if interval.rank == 0]
    assert names == ["forward", "backward", *["all_reduce"] * 4, "optimizer"]


@pytest.mark.parametrize(("sync", "all_reduces"), [("flat", 1), ("bucketed", 3), ("per_parameter", 5)])
def test_a_way_to_sync_is_as_many_calls_and_the_same_bytes(launcher: LocalLauncher, sync: str, all_reduces: int) -> None:
    [result] = held([measure_one(launcher, 2, Experiment("data_parallel", L=5, options={"sync": sync}))])
    calls = report_of(result).calls_by_rank
    assert calls is not None
    assert [dict(of_rank) for of_rank in calls] == [{"all_reduce": all_reduces}] * 2
    assert total_bytes(result) == 2 * 5 * 16 * 4


@pytest.mark.parametrize(("loss", "alone", "on_two"), [("sum", 60, 30), ("mean", 15, 15)])
def test_a_summed_loss_gives_60_alone_and_30_on_two_and_a_mean_agrees(
        launcher: LocalLauncher, loss: str, alone: int, on_two: int) -> None:
    one, two = (measure_one(launcher, size, Experiment("loss_reduction", options={"loss": loss})) for size in (1, 2))
    held([one, two])
    assert report_of(one).values == {"gradient_of_one_process": alone, "gradient_of_ddp": alone}
    assert report_of(two).values == {"gradient_of_one_process": alone, "gradient_of_ddp": on_two}
    assert result_json(two)["measured"]["values"] == report_of(two).values


def test_sequence_parallelism_sends_a_pairs_bytes_on_our_ring_and_half_as_much_again_on_gloo(launcher: LocalLauncher) -> None:
    def pair(activations: str, collectives: str) -> Experiment:
        return Experiment("tensor_megatron", L=4, H=8, T=8, options={"activations": activations, "collectives": collectives})

    pairs, ring, library = held(measure(launcher, 4, pair("replicated", "library"), pair("sequence_parallel", "ring"),
                                        pair("sequence_parallel", "library")))
    assert total_bytes(ring) == total_bytes(pairs)
    assert 2 * total_bytes(library) == 3 * total_bytes(pairs)
    assert (ring.gap_bytes, library.gap_bytes) == (0, total_bytes(pairs) // 2)
    assert "reduce_scatter_as_all_reduce" in library.prediction.causes


def test_sequence_parallelism_keeps_a_share_of_the_tokens_between_pairs(launcher: LocalLauncher) -> None:
    """Outside of a pair a GPU has T/P tokens: the output, which its loss keeps, is a quarter as large."""
    replicated, split = held(measure(launcher, 4, *(
        Experiment("tensor_megatron", L=2, H=8, T=8, options={"activations": activations, "collectives": "ring"})
        for activations in ("replicated", "sequence_parallel"))))
    assert saved_bytes(replicated) - saved_bytes(split) == (8 - 8 // 4) * 8 * 4


def test_each_layer_pair_and_dtensor_send_24_12_and_12_from_each_gpu(launcher: LocalLauncher) -> None:
    names = ["tensor_parallel", "tensor_megatron", "tensor_dtensor"]
    results = held(measure(launcher, 4, *(Experiment(name) for name in names)))
    assert [total_bytes(result) // 16 for result in results] == [24, 12, 12]


def test_megatron_core_sends_what_our_pair_sends_rank_by_rank(launcher: LocalLauncher) -> None:
    pairs = [Experiment(name, L=4, H=8, T=3) for name in ("tensor_megatron", "megatron_core")]
    ours, theirs = held(measure(launcher, 4, *pairs))
    assert report_of(theirs).payload_bytes_by_rank == report_of(ours).payload_bytes_by_rank


def test_a_timing_run_takes_one_pass_counts_nothing_and_may_be_larger(launcher: LocalLauncher) -> None:
    options: dict[str, OptionValue] = {"implementation": "library", "elements": 2_000_000, "calls": 2}
    spec = RunSpec(2, (Experiment("ring_all_reduce", options=options),), repetitions=5, purpose="timing")
    [report] = launcher.run(spec).experiments
    assert report.step_seconds > 0
    assert (report.payload_matrix, report.wire_matrix, report.dtype) == (None, None, "fp32")
    assert report.weights_max_difference == 0
    assert report.calls_by_rank == ({"all_reduce": 2},) * 2
    assert "leaves the backend alone" in report.note


def test_a_collective_called_in_a_row_is_measured_as_often(launcher: LocalLauncher) -> None:
    once, thrice = measure(launcher, 3, *(Experiment("ring_all_reduce", options={"elements": 7, "calls": calls})
                                          for calls in (1, 3)))
    assert once.verdict is thrice.verdict is Verdict.EQUAL
    assert total_bytes(thrice) == 3 * total_bytes(once)
