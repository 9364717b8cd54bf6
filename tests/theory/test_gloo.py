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


def sent_by_gloos_loop(s: int, P: int, element_bytes: int) -> tuple[int, ...]:
    """What the function `ring` in gloo/allreduce.cc hands to the sockets: its segments, offsets and loops, run step by step."""
    total = s * element_bytes
    num_segments = _up_to(max(-(-total // gloo.MAX_SEGMENT_BYTES), 2 * P), P)
    segment, each = _up_to(-(-total // num_segments), element_bytes), num_segments // P

    def length(index: int) -> int:
        return max(0, min(segment, total - segment * (index % num_segments)))

    steps = range(num_segments - each)
    return tuple(sum(length(first * each + step) for first in (rank + 1, rank) for step in steps) // element_bytes
                 for rank in range(P))


def _up_to(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


@given(s=LENGTHS, P=WORLDS, element_bytes=st.sampled_from([2, 4, 8]))
def test_by_rank_is_what_gloos_own_loop_sends(s: int, P: int, element_bytes: int) -> None:
    assert gloo.all_reduce_by_rank(s, P) == sent_by_gloos_loop(s, P, element_bytes)


@given(P=st.integers(2, 8), spare=st.integers(0, 9))
def test_up_to_the_longest_buffer_that_is_known_fp64_is_cut_as_fp32(P: int, spare: int) -> None:
    s = 2 * P * gloo.MAX_SEGMENT_BYTES // gloo.WIDEST_ELEMENT_BYTES - spare
    assert gloo.cut_is_known(s, P)
    assert sent_by_gloos_loop(s, P, 8) == sent_by_gloos_loop(s, P, 4) == gloo.all_reduce_by_rank(s, P)
