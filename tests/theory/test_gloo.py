"""What gloo was measured to send, element for element."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.theory import collectives, gloo

LENGTHS = st.integers(0, 5000)
WORLDS = st.integers(1, 24)


@pytest.mark.parametrize(("s", "P", "calls", "measured"), [
    (4, 4, 4, (24, 16, 24, 32)),  # tensor parallel at the defaults: four all-reduces of 4 elements
    (32, 4, 1, (48, 48, 48, 48)),
    (32, 3, 1, (44, 40, 44)),
    (32, 8, 1, (56,) * 8),
    (32, 2, 1, (32, 32)),
    (32, 1, 1, (0,)),
])
def test_all_reduce_by_rank_is_what_was_measured(s: int, P: int, calls: int, measured: tuple[int, ...]) -> None:
    assert tuple(calls * sent for sent in gloo.all_reduce_by_rank(s, P)) == measured


@pytest.mark.parametrize(("P", "messages"), [
    (1, (0,)), (2, (1, 0)), (3, (2, 0, 0)), (4, (2, 1, 0, 0)), (5, (3, 1, 0, 0, 0)), (6, (3, 2, 0, 0, 0, 0)),
    (8, (3, 2, 1, 1, 0, 0, 0, 0)),
])
def test_broadcast_is_a_binomial_tree_from_rank_0(P: int, messages: tuple[int, ...]) -> None:
    assert collectives.tree_broadcast_by_rank(32, P) == tuple(32 * count for count in messages)


@given(s=LENGTHS, P=WORLDS)
def test_all_reduce_sends_the_ideal_total_for_every_length(s: int, P: int) -> None:
    assert sum(gloo.all_reduce_by_rank(s, P)) == collectives.ring_all_reduce_total(s, P)


@given(s=LENGTHS, P=WORLDS)
def test_blocks_cover_the_buffer(s: int, P: int) -> None:
    assert sum(gloo.all_reduce_blocks(s, P)) == s


@given(multiple=st.integers(1, 300), P=WORLDS)
def test_all_gpus_send_the_same_where_twice_their_number_divides_the_buffer(multiple: int, P: int) -> None:
    s = 2 * P * multiple
    assert gloo.all_reduce_by_rank(s, P) == (collectives.ring_all_reduce(s, P),) * P


@given(s=LENGTHS, P=WORLDS)
def test_all_gather_sends_padded_shares(s: int, P: int) -> None:
    assert gloo.all_gather_by_rank(s, P) == (collectives.all_gather_padded(s, P),) * P


def test_the_cut_is_known_up_to_the_size_of_a_counting_run_in_fp64() -> None:
    assert gloo.cut_is_known(262_144, 1)
    assert not gloo.cut_is_known(262_145, 1)
    assert gloo.cut_is_known(262_145, 2)
