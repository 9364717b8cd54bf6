"""What a strategy is said to send, and why lesson and backend differ."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.runs.verify import beside_the_defaults
from app.theory import CAUSE_TEXT, Cause, Prediction, predict
from app.theory.units import BYTES_PER_ELEMENT
from app.theory.volume import UNEVEN
from kernels import spec
from kernels.spec import COLLECTIVES, IMPLEMENTATIONS, STRATEGY_SPECS, OptionValue

Options = dict[str, OptionValue]
CASES: list[tuple[str, Options]] = [(name, {}) for name in STRATEGY_SPECS if name != "ring_all_reduce"]
CASES += [("ring_all_reduce", {"collective": collective, "implementation": implementation})
          for collective in COLLECTIVES for implementation in IMPLEMENTATIONS]
CASES += [("ring_all_reduce", {"calls": 3})]
CASES += [(name, dict(options)) for name, strategy in STRATEGY_SPECS.items() if name != "ring_all_reduce"
          for options in beside_the_defaults(strategy)]
EACH = pytest.mark.parametrize(("strategy", "options"), CASES, ids=[f"{name}{list(given.values())}" for name, given in CASES])
SETTINGS = st.fixed_dictionaries({
    "P": st.integers(1, 40), "L": st.sampled_from([2, 4, 6, 8]), "H": st.integers(1, 40), "T": st.integers(1, 16),
    "m": st.integers(1, 16), "backend": st.sampled_from(["gloo", "nccl"]),
})


def library(collective: str, P: int, backend: str = "gloo", **given: int) -> Prediction:
    options: dict[str, OptionValue] = {"collective": collective, "implementation": "library", **given}
    return predict("ring_all_reduce", P=P, backend=backend, options=options)


def ranks(prediction: Prediction) -> list[int]:
    assert prediction.exact.by_rank is not None
    return [int(value) for value in prediction.exact.by_rank]


@EACH
@given(setting=SETTINGS)
def test_ranks_add_up_to_the_total(strategy: str, options: Mapping[str, OptionValue], setting: dict[str, object]) -> None:
    prediction = predict(strategy, options=options, **setting)  # type: ignore[arg-type]
    for volume in (prediction.taught, prediction.exact):
        assert volume.active_gpus <= setting["P"]  # type: ignore[operator]
        if volume.by_rank is not None:
            assert len(volume.by_rank) == setting["P"]
            assert sum(volume.by_rank) == volume.total == volume.mean * volume.active_gpus
            assert all(sent == 0 for sent in volume.by_rank[volume.active_gpus:])
            assert volume.max == max(volume.by_rank)


@EACH
@given(setting=SETTINGS)
def test_a_difference_has_a_named_cause(strategy: str, options: Mapping[str, OptionValue], setting: dict[str, object]) -> None:
    prediction = predict(strategy, options=options, **setting)  # type: ignore[arg-type]
    ranks = prediction.taught.by_rank, prediction.exact.by_rank
    if prediction.exact.total != prediction.taught.total:
        assert set(prediction.causes) - UNEVEN
    elif None not in ranks and ranks[0] != ranks[1]:
        assert prediction.causes


@EACH
def test_on_one_gpu_nothing_is_sent(strategy: str, options: Mapping[str, OptionValue]) -> None:
    prediction = predict(strategy, P=1, options=options)
    assert ranks(prediction) == [0]
    assert prediction.exact.active_gpus == 1


def test_the_flagship_numbers() -> None:
    data, tensor, pipeline = (predict(name, P=4) for name in ("data_parallel", "tensor_parallel", "pipeline_gpipe"))
    assert (data.taught.mean, data.taught.total) == (48, 192)
    assert (tensor.taught.mean, tensor.taught.total) == (24, 96)
    assert (pipeline.taught.max, pipeline.taught.total) == (4, 8)
    assert predict("data_parallel", P=8).taught.mean == 56


@pytest.mark.parametrize(("strategy", "P", "measured"), [
    ("data_parallel", 4, [48, 48, 48, 48]), ("ddp", 3, [44, 40, 44]), ("ddp", 8, [56] * 8),
    ("tensor_parallel", 4, [24, 16, 24, 32]), ("pipeline_gpipe", 4, [4, 4, 0, 0]), ("single", 4, [0, 0, 0, 0]),
])
def test_by_rank_is_what_was_measured_on_gloo(strategy: str, P: int, measured: list[int]) -> None:
    assert ranks(predict(strategy, P=P)) == measured


def test_equal_batches_send_48_96_and_32() -> None:
    assert predict("data_parallel", P=4).exact.mean == 48
    assert predict("tensor_parallel", P=4, T=4).exact.mean == 96
    assert predict("pipeline_gpipe", P=4, m=4).exact.total == 32


def test_tensor_on_more_gpus_than_columns_names_the_idle_ones() -> None:
    prediction = predict("tensor_parallel", P=8)
    assert prediction.taught.mean == 28
    assert (prediction.exact.mean, prediction.exact.active_gpus) == (24, 4)
    assert ranks(prediction) == [24, 16, 24, 32, 0, 0, 0, 0]
    assert Cause.IDLE_GPUS in prediction.causes
    assert prediction.gap_elements == -128


@pytest.mark.parametrize("strategy", ["tensor_megatron", "tensor_dtensor"])
def test_pairs_send_half_and_refuse_an_odd_layer(strategy: str) -> None:
    assert predict(strategy, P=4).exact.total == 48
    with pytest.raises(ValueError, match="L = 3: layers come in pairs"):
        predict(strategy, P=4, L=3)


@pytest.mark.parametrize("strategy", ["pipeline_gpipe", "pipeline_1f1b", "pipeline_torch"])
def test_a_pipeline_with_fewer_gpus_than_layers_names_the_local_boundaries(strategy: str) -> None:
    prediction = predict(strategy, P=4, L=8)
    assert (prediction.taught.total, prediction.taught.by_rank, prediction.taught.max) == (56, None, None)
    assert ranks(prediction) == [4, 8, 8, 4]
    assert prediction.causes == (Cause.LOCAL_BOUNDARIES,)
    assert prediction.gap_elements == 24 - 56


def test_the_librarys_reduce_scatter_on_gloo_sends_as_much_as_its_all_reduce() -> None:
    reduce_scatter, all_reduce = library("reduce_scatter", 4), library("all_reduce", 4)
    assert reduce_scatter.exact == all_reduce.exact
    assert reduce_scatter.taught.mean == 24
    assert reduce_scatter.causes == (Cause.REDUCE_SCATTER_AS_ALL_REDUCE,)
    assert library("reduce_scatter", 4, backend="nccl").exact.mean == 24


@pytest.mark.parametrize(("implementation", "collective", "cause"), [
    ("ring", "all_reduce", Cause.UNEVEN_CHUNKS), ("library", "all_reduce", Cause.UNEVEN_SEGMENTS),
    ("library", "all_to_all", Cause.UNEVEN_CHUNKS), ("ring", "all_gather", Cause.UNEVEN_CHUNKS),
])
def test_who_cut_the_buffer_unevenly_is_named(implementation: str, collective: str, cause: Cause) -> None:
    """32 elements on 3 GPUs: our ring cuts 3 chunks, gloo's all-reduce 6 segments; an all-to-all sends blocks of our cut."""
    prediction = predict("ring_all_reduce", P=3, options={"collective": collective, "implementation": implementation})
    assert prediction.causes == (cause,)
    assert ("gloo" in CAUSE_TEXT[cause]) == (cause is Cause.UNEVEN_SEGMENTS)


def test_padding_is_named_where_equal_shares_are_wanted() -> None:
    gathered = library("all_gather", 3)
    assert ranks(gathered) == [22, 22, 22]
    assert gathered.causes == (Cause.PADDING,)
    assert set(library("reduce_scatter", 3).causes) >= {Cause.PADDING, Cause.REDUCE_SCATTER_AS_ALL_REDUCE}


def test_a_broadcast_is_counted_in_all_and_its_route_by_rank() -> None:
    prediction = library("broadcast", 4)
    assert (prediction.taught.total, prediction.taught.by_rank) == (96, None)
    assert ranks(prediction) == [64, 32, 0, 0]
    assert library("broadcast", 4, backend="nccl").exact.by_rank is None


def test_elements_are_taken_as_given_and_zero_means_the_model() -> None:
    assert library("all_reduce", 4, elements=1000).taught.total == 6000
    assert library("all_reduce", 4, elements=0) == library("all_reduce", 4)


def test_a_buffer_that_gloo_cuts_into_more_segments_is_known_in_total_only() -> None:
    prediction = library("all_reduce", 2, elements=700_001)
    assert prediction.exact.total == 2 * 700_001
    assert prediction.exact.by_rank is None


@pytest.mark.parametrize("strategy", ["data_parallel", "ddp"])
def test_four_micro_steps_cost_one_sync_or_four(strategy: str) -> None:
    def total(**options: OptionValue) -> Fraction:
        return predict(strategy, P=4, options={"accumulation": 4, **options}).exact.total

    assert total() == total(sync_when="once") == 192
    assert total(sync_when="every_micro_step") == 4 * 192


def test_bf16_gradients_are_as_many_elements_of_another_type() -> None:
    plain, compressed = (predict("ddp", P=4, options={"comm_dtype": dtype}) for dtype in ("fp32", "bf16"))
    assert compressed.exact == plain.exact
    assert (plain.dtype, compressed.dtype) == ("fp32", "bf16")


@given(P=st.integers(2, 16), L=st.integers(1, 12), H=st.integers(1, 12), bucket_bytes=st.integers(4, 2000))
def test_however_the_gradient_is_cut_in_pieces_the_total_stays(P: int, L: int, H: int, bucket_bytes: int) -> None:
    totals = {predict("data_parallel", P=P, L=L, H=H, options=options).exact.total for options in (
        {}, {"sync": "per_parameter"}, {"sync": "bucketed", "bucket_bytes": bucket_bytes})}
    totals.add(predict("ddp", P=P, L=L, H=H, options={"bucket_bytes": bucket_bytes}).exact.total)
    assert totals == {2 * (P - 1) * L * H * H}


def test_a_parameter_at_a_time_is_cut_a_parameter_at_a_time() -> None:
    """H = 2 on four ranks: 4 elements a layer are cut 6, 4, 6, 8; all 8 at once evenly."""
    assert ranks(predict("data_parallel", P=4, L=2, H=2)) == [12, 12, 12, 12]
    assert ranks(predict("data_parallel", P=4, L=2, H=2, options={"sync": "per_parameter"})) == [12, 8, 12, 16]


@pytest.mark.parametrize("strategy", ["data_parallel", "ddp"])
def test_a_bucket_of_17_bytes_holds_two_layers_of_16(strategy: str) -> None:
    """Measured on gloo. Cut down to whole elements, a bucket would be full after one layer, of which ranks send 6, 4, 6, 8."""
    options: Options = {"bucket_bytes": 17} if strategy == "ddp" else {"sync": "bucketed", "bucket_bytes": 17}
    assert ranks(predict(strategy, P=4, L=2, H=2, options=options)) == [12, 12, 12, 12]


@pytest.mark.parametrize(("collectives", "backend", "gap"), [("ring", "gloo", 1), ("library", "gloo", Fraction(3, 2)),
                                                             ("library", "nccl", 1)])
def test_sequence_parallelism_costs_half_as_much_again_where_a_reduce_scatter_is_an_all_reduce(
        collectives: str, backend: str, gap: Fraction | int) -> None:
    options: Options = {"activations": "sequence_parallel", "collectives": collectives}
    prediction = predict("tensor_megatron", P=4, H=8, T=4, backend=backend, options=options)
    assert prediction.taught == predict("tensor_megatron", P=4, H=8, T=4).taught
    assert prediction.exact.total == gap * prediction.taught.total
    assert (Cause.REDUCE_SCATTER_AS_ALL_REDUCE in prediction.causes) == (gap != 1)


def test_megatron_core_is_predicted_as_our_pair() -> None:
    assert predict("megatron_core", P=4).exact == predict("tensor_megatron", P=4).exact


def test_a_collective_called_three_times_sends_three_times_as_much() -> None:
    once, thrice = library("all_reduce", 3), library("all_reduce", 3, calls=3)
    assert ranks(thrice) == [3 * sent for sent in ranks(once)]
    assert thrice.taught.total == 3 * once.taught.total


def test_nccl_is_held_to_the_ideal_total_only() -> None:
    prediction = predict("data_parallel", P=3, backend="nccl")
    assert prediction.exact.mean == Fraction(128, 3)
    assert prediction.exact.by_rank is None
    assert predict("pipeline_gpipe", P=3, backend="nccl").exact.by_rank == (4, 4, 0)


def test_thousands_of_gpus_are_predicted() -> None:
    prediction = predict("data_parallel", P=4096, L=16, H=64)
    assert prediction.taught.total == 2 * 4095 * 65536 == sum(prediction.exact.by_rank or ())


@pytest.mark.parametrize(("asked", "message"), [
    ({"strategy": "magic"}, "strategy = magic: unknown; choose one of single, data_parallel"),
    ({"P": 0}, "P = 0: must be a whole number, 1 or more"),
    ({"L": 0}, "L = 0: must be a whole number"),
    ({"H": 2.5}, "H = 2.5: must be a whole number"),
    ({"backend": "mpi"}, "backend = mpi: must be one of gloo, nccl"),
    ({"strategy": "single", "options": {"colour": "red"}}, "colour = red: single does not take it; it has no options"),
    ({"options": {"colour": "red"}}, "colour = red: data_parallel does not take it; its options are sync, bucket_bytes"),
    ({"options": {"accumulation": 0}}, "accumulation = 0: must be a whole number from 1 to 10"),
    ({"options": {"comm_dtype": "fp8"}}, "comm_dtype = fp8: must be one of fp32, bf16"),
    ({"strategy": "ring_all_reduce", "options": {"collective": "scan"}}, "collective = scan: must be one of all_reduce"),
    ({"strategy": "ring_all_reduce", "options": {"elements": -1}}, "elements = -1: must be a whole number from 0 to 10"),
    ({"strategy": "ring_all_reduce", "options": {"speed": 1}}, "speed = 1: ring_all_reduce does not take it; its options are"),
])
def test_what_cannot_be_predicted_is_refused_by_name_value_and_range(asked: dict[str, object], message: str) -> None:
    arguments = {"strategy": "data_parallel", "P": 4, **asked}
    with pytest.raises(ValueError, match=message):
        predict(**arguments)  # type: ignore[arg-type]


def test_every_cause_has_one_sentence() -> None:
    assert set(CAUSE_TEXT) == set(Cause)
    for text in CAUSE_TEXT.values():
        assert text.endswith(".")
        assert ". " not in text


def test_theory_and_contract_agree_on_bytes_and_sizes() -> None:
    assert spec.BYTES_PER_ELEMENT.items() <= BYTES_PER_ELEMENT.items()
    assert spec.tensor_active_gpus(8, 4) == predict("tensor_parallel", P=8).exact.active_gpus
    assert spec.pipeline_stages(4, 2) == predict("pipeline_gpipe", P=4).exact.active_gpus
