"""Data, tensor and pipeline parallel, ZeRO and batches: what must hold between the formulas."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.theory import batch, collectives, data_parallel, pipeline_parallel, tensor_parallel, units, zero
from kernels import schedule

WORLDS = st.integers(1, 128)
LAYERS = st.integers(1, 24)
WIDTHS = st.integers(1, 96)
TOKENS = st.integers(1, 64)


@given(P=WORLDS, L=LAYERS, H=WIDTHS)
def test_data_parallel_comes_close_to_its_limit_and_stays_below(P: int, L: int, H: int) -> None:
    assert data_parallel.volume(P, L, H) == data_parallel.limit(L, H) * Fraction(P - 1, P)
    assert data_parallel.total_volume(P, L, H) == P * data_parallel.volume(P, L, H)


@given(P=st.integers(2, 128), L=LAYERS, H=WIDTHS, T=TOKENS)
def test_data_and_tensor_break_even_at_half_the_width(P: int, L: int, H: int, T: int) -> None:
    data, tensor = data_parallel.volume(P, L, H), tensor_parallel.taught_volume(P, L, H, T)
    assert (data > tensor) == (tensor_parallel.break_even_tokens(H) > T)
    assert data / tensor == tensor_parallel.data_over_tensor(H, T)


@given(P=WORLDS, pairs=st.integers(1, 12), H=WIDTHS, T=TOKENS)
def test_a_megatron_pair_needs_half(P: int, pairs: int, H: int, T: int) -> None:
    L = 2 * pairs
    assert 2 * tensor_parallel.megatron_volume(P, L, H, T) == tensor_parallel.taught_volume(P, L, H, T)
    saved = tensor_parallel.megatron_volume(P, L, H, T) - tensor_parallel.megatron_raw_input_volume(P, L, H, T)
    assert saved == tensor_parallel.boundary_volume(P, H, T)


@given(P=WORLDS, L=LAYERS, H=WIDTHS, T=TOKENS)
def test_a_tensor_step_sends_two_all_reduces_a_layer_among_the_gpus_that_hold_a_piece(P: int, L: int, H: int, T: int) -> None:
    active = P if P <= H else H
    once = sum(schedule.elements_sent(schedule.ring_all_reduce(active), T * H))
    assert tensor_parallel.exact_total(P, L, H, T) == 2 * L * once
    assert tensor_parallel.exact_volume(P, L, H, T) == Fraction(2 * L * once, active)


@given(T=TOKENS, H=WIDTHS, t=st.integers(1, 64))
def test_sequence_parallelism_sends_the_same_bytes(T: int, H: int, t: int) -> None:
    assert tensor_parallel.sequence_parallel_layer_volume(T, H, t) == tensor_parallel.transformer_layer_volume(T, H, t)


@given(T=TOKENS, H=WIDTHS, t=st.integers(2, 64))
def test_partitioned_activations_add_one_all_gather_to_full_recomputation(T: int, H: int, t: int) -> None:
    added = collectives.all_gather(T * H, t) / tensor_parallel.transformer_layer_recompute_volume(T, H, t)
    assert added == tensor_parallel.partitioned_activation_overhead() == Fraction(1, 12)


def test_a_transformer_layer_recomputed_on_many_gpus_comes_close_to_twelve_activations() -> None:
    assert tensor_parallel.transformer_layer_recompute_limit(3, 10) == 360
    assert tensor_parallel.transformer_layer_recompute_volume(3, 10, 1000) == Fraction(360 * 999, 1000)


@given(P=WORLDS, L=LAYERS, H=WIDTHS, T=TOKENS, m=st.integers(1, 16))
def test_pipeline_ranks_add_up_and_none_sends_more_than_the_busiest(P: int, L: int, H: int, T: int, m: int) -> None:
    sent = pipeline_parallel.sent_by_rank(P, L, H, T, m)
    assert len(sent) == P
    assert sum(sent) == pipeline_parallel.exact_volume(P, L, H, T, m)
    assert max(sent) == pipeline_parallel.busiest_gpu_volume(P, L, H, T, m)
    assert sent.count(0) == (P if min(P, L) == 1 else pipeline_parallel.idle_gpus(P, L))


@given(P=WORLDS, L=LAYERS, H=WIDTHS, T=TOKENS, m=st.integers(1, 16))
def test_the_taught_pipeline_is_exact_from_one_gpu_a_layer_on(P: int, L: int, H: int, T: int, m: int) -> None:
    taught, exact = pipeline_parallel.taught_volume(L, H, T, m), pipeline_parallel.exact_volume(P, L, H, T, m)
    assert (taught == exact) == (P >= L)
    assert exact <= taught


def test_one_chunk_a_gpu_is_the_plain_pipeline() -> None:
    assert pipeline_parallel.interleaved_volume(4, 4, 1, 1, 1) == pipeline_parallel.exact_volume(4, 4, 4, 1, 1)
    assert pipeline_parallel.interleaved_volume(1, 4, 1, 1, 3) == 0


@given(params=st.integers(0, 10**9), P=WORLDS, A=st.integers(1, 32))
def test_zero_sends_two_two_three_and_more_with_accumulation(params: int, P: int, A: int) -> None:
    pass_volume = Fraction(P - 1, P) * params
    assert zero.zero1_volume(params, P) == zero.zero2_volume(params, P) == 2 * pass_volume
    assert zero.zero3_volume(params, P) == 3 * pass_volume
    assert zero.zero2_accumulated_volume(params, P, A) == (A + 1) * pass_volume
    assert zero.zero3_accumulated_volume(params, P, A) == 3 * A * pass_volume
    assert zero.zero3_kept_gathered_volume(params, P) == 2 * pass_volume


@pytest.mark.parametrize(("stage", "printed"), [(0, "120.0"), (1, "31.4"), (2, "16.6"), (3, "1.9")])
def test_resident_bytes_print_the_zero_papers_table(stage: int, printed: str) -> None:
    """Rajbhandari et al. 2020, figure 1: 7.5 thousand million parameters on 64 GPUs, Adam with 16 bytes a parameter."""
    held = zero.resident_bytes(7_500_000_000, 64, stage, weight_bytes=2, gradient_bytes=2, optimizer_bytes=12)
    assert f"{float(held / 10**9):.1f}" == printed


@pytest.mark.parametrize(("P", "elements"), [(2, 16), (3, 24), (4, 16), (8, 32)])
def test_fsdp2_pads_rows_as_measured(P: int, elements: int) -> None:
    assert zero.fsdp2_padded_layer(4, P) == elements


@given(elements=st.integers(0, 10**6), P=WORLDS)
def test_padding_is_less_than_one_element_a_gpu(elements: int, P: int) -> None:
    assert zero.shard_elements(elements, P) * P - elements == zero.padding_elements(elements, P) < P


def test_a_batch_counts_replicas_and_not_gpus() -> None:
    assert batch.replicas(64, 4, 1, 2) == 8
    assert batch.global_batch_of_world(64, 4, 1, 2, b=1, A=16) == batch.global_batch(1, 16, 8) == 128
    assert batch.rampup_increments(16, 2048, 16) == 127


@given(b=st.integers(1, 64), A=st.integers(1, 64), d=WORLDS)
def test_micro_batches_undo_the_global_batch(b: int, A: int, d: int) -> None:
    assert batch.num_micro_batches(batch.global_batch(b, A, d), b, d) == A
    assert A * d * batch.micro_batch_weight(A, d) == 1


def test_a_mean_of_means_weighs_ten_tokens_like_a_hundred() -> None:
    assert batch.token_weight_ratio(10, 100) == 10
    assert batch.mean_of_means(4, 1) == Fraction(5, 2)
    assert batch.token_weighted_mean(4, 1, 10, 100) == Fraction(140, 110)


@given(first=st.integers(-50, 50), second=st.integers(-50, 50), tokens=st.integers(1, 4096))
def test_both_means_agree_on_equal_token_counts(first: int, second: int, tokens: int) -> None:
    assert batch.mean_of_means(first, second) == batch.token_weighted_mean(first, second, tokens, tokens)


def test_ddp_halves_the_gradient_of_a_summed_loss_on_two() -> None:
    whole = sum(2 * x * x for x in (-1, 2, -3, 4))
    assert (whole, batch.averaged_gradient(whole, 2)) == (60, 30)
    with pytest.raises(ValueError, match="gradient = inf: must be a number"):
        batch.averaged_gradient(float("inf"), 2)


@given(P=WORLDS, pairs=st.integers(1, 12), H=WIDTHS, T=TOKENS)
def test_a_pair_sends_as_much_with_sequence_parallelism_and_half_as_much_again_without_a_reduce_scatter(
        P: int, pairs: int, H: int, T: int) -> None:
    split = tensor_parallel.sequence_parallel_volume(P, 2 * pairs, H, T)
    assert split == tensor_parallel.megatron_volume(P, 2 * pairs, H, T)
    assert tensor_parallel.sequence_parallel_all_reduced_volume(P, 2 * pairs, H, T) == Fraction(3, 2) * split


def test_giga_is_said_twice() -> None:
    assert units.gigabytes(10**9) == units.gibibytes(2**30) == 1
    assert units.bytes(Fraction(128, 3), "fp32") == Fraction(512, 3)
