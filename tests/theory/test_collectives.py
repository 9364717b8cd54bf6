"""Ideal volumes, and our own ring by rank against the plan that the kernels execute."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.theory import collectives
from kernels import schedule

LENGTHS = st.integers(0, 5000)
WORLDS = st.integers(1, 24)
OWN = {
    "all_reduce": collectives.own_all_reduce_by_rank,
    "reduce_scatter": collectives.own_reduce_scatter_by_rank,
    "all_gather": collectives.own_all_gather_by_rank,
    "broadcast": collectives.tree_broadcast_by_rank,
    "all_to_all": collectives.all_to_all_by_rank,
    "send_recv": collectives.send_recv_by_rank,
}
TOTALS = {
    "all_reduce": collectives.ring_all_reduce_total,
    "reduce_scatter": collectives.reduce_scatter_total,
    "all_gather": collectives.all_gather_total,
    "broadcast": collectives.broadcast_total,
    "all_to_all": collectives.all_to_all_total,
    "send_recv": collectives.send_recv,
}
MEANS = {
    "all_reduce": collectives.ring_all_reduce,
    "reduce_scatter": collectives.reduce_scatter,
    "all_gather": collectives.all_gather,
    "all_to_all": collectives.all_to_all,
}
PADDED = {
    "all_reduce": collectives.ring_all_reduce_padded,
    "reduce_scatter": collectives.reduce_scatter_padded,
    "all_gather": collectives.all_gather_padded,
}


def sent_by_plan(collective: str, s: int, P: int) -> tuple[int, ...]:
    """Elements that each rank sends when our kernels run it on s of them."""
    return schedule.elements_sent(schedule.COLLECTIVE_PLANS[collective](P), s)


@pytest.mark.parametrize("collective", schedule.COLLECTIVE_PLANS)
@given(s=LENGTHS, P=WORLDS)
def test_our_formula_by_rank_is_what_the_plan_sends(collective: str, s: int, P: int) -> None:
    assert OWN[collective](s, P) == sent_by_plan(collective, s, P)


@pytest.mark.parametrize("collective", OWN)
@given(s=LENGTHS, P=WORLDS)
def test_the_total_does_not_depend_on_the_cut(collective: str, s: int, P: int) -> None:
    assert sum(OWN[collective](s, P)) == TOTALS[collective](s, P)


@pytest.mark.parametrize("collective", MEANS)
@given(s=LENGTHS, P=WORLDS)
def test_the_mean_is_that_of_what_the_plan_sends(collective: str, s: int, P: int) -> None:
    assert MEANS[collective](s, P) == Fraction(sum(sent_by_plan(collective, s, P)), P)


@pytest.mark.parametrize("collective", PADDED)
@given(s=LENGTHS, P=WORLDS)
def test_padded_chunks_are_sent_as_the_plan_sends_the_padded_buffer(collective: str, s: int, P: int) -> None:
    filled_up = s + -s % P
    assert sent_by_plan(collective, filled_up, P) == (PADDED[collective](s, P),) * P


def test_the_taught_formulas_at_32_elements_on_4_gpus() -> None:
    assert [mean(32, 4) for mean in MEANS.values()] == [48, 24, 24, 24]
    assert [total(32, 4) for total in TOTALS.values()] == [192, 96, 96, 96, 96, 32]
    assert [padded(30, 4) for padded in PADDED.values()] == [48, 24, 24]


@pytest.mark.parametrize("collective", OWN)
def test_one_gpu_sends_nothing(collective: str) -> None:
    assert OWN[collective](32, 1) == (0,)


@given(s=st.integers(1, 5000), P=WORLDS)
def test_a_ring_all_reduce_grows_with_gpus_and_stays_below_twice_the_buffer(s: int, P: int) -> None:
    assert collectives.ring_all_reduce(s, P) < collectives.ring_all_reduce(s, P + 1) < 2 * s


def test_uneven_chunks_differ_by_rank_as_the_published_notes_say() -> None:
    assert sorted(collectives.own_all_reduce_by_rank(32, 3)) == [42, 43, 43]
    assert set(collectives.own_all_reduce_by_rank(32, 5)) <= {50, 51, 52}
    assert set(collectives.own_all_reduce_by_rank(32, 7)) <= {54, 55, 56}


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather() -> None:
    assert collectives.ring_all_reduce(32, 4) == collectives.reduce_scatter(32, 4) + collectives.all_gather(32, 4)


def test_a_hundred_megabytes_on_four_gpus_send_a_hundred_and_fifty_each() -> None:
    assert collectives.ring_all_reduce(100, 4) == 150


def test_results_are_exact_fractions() -> None:
    assert collectives.ring_all_reduce(32, 3) == Fraction(128, 3)
