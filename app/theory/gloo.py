"""What gloo, the backend of the runs on CPU, sends rank by rank: derived from how its own code cuts a buffer.

Source: gloo/allreduce.cc, function `ring` (github.com/pytorch/gloo). A buffer is cut into equal segments, as many for a rank:
at least two, because one is reduced while the other travels, and so many that none is over 1 MiB (kMaxSegmentSize in
gloo/allreduce.h). Chunk r, rank r's segments, ends there; the segment size is rounded up, so the last chunks may be short or
empty. A test runs that function's loop and finds the same; the kernel's TCP counters agree to the byte (PyTorch 2.13, P = 2 to
8, short and odd lengths).
"""

from __future__ import annotations

from app.theory.checks import whole
from app.theory.collectives import padded_chunk

MAX_SEGMENT_BYTES = 2**20
WIDEST_ELEMENT_BYTES = 8  # a counting run sends each step in fp64 as well


def all_reduce_by_rank(s: int, P: int) -> tuple[int, ...]:
    """Elements each rank sends in gloo's ring all-reduce of s elements.

        sent[r] = 2 s - block[(r - 1) mod P] - block[r]
        block[k] = s - 2 k c limited to 0 .. 2 c         c = ceil(s / (2 P)), the segment

    In the reduce-scatter a rank sends all blocks but its own, where it ends; in the all-gather all but that of rank r - 1, to
    which it sends. The last blocks may be short or empty, so a small buffer is cut very unevenly: s = 4 on P = 4 sends 6, 4, 6,
    8. Only if 2 P divides s do all send the same. The total is 2 (P - 1) s for every s. Holds while `cut_is_known(s, P)`.
    Raises ValueError if s < 0 or P < 1.
    """
    block = all_reduce_blocks(s, P)
    return tuple(2 * s - block[rank - 1] - block[rank] if P > 1 else 0 for rank in range(P))


def all_reduce_blocks(s: int, P: int) -> tuple[int, ...]:
    """Elements of each rank's block, two segments of ceil(s / (2 P)) while the buffer lasts."""
    segment = padded_chunk(s, 2 * whole("P", P))
    return tuple(min(max(s - 2 * rank * segment, 0), 2 * segment) for rank in range(P))


def cut_is_known(s: int, P: int) -> bool:
    """Whether two segments a rank are enough: no segment over 1 MiB even in fp64. Above, gloo makes more of them."""
    return s * WIDEST_ELEMENT_BYTES <= 2 * P * MAX_SEGMENT_BYTES


def all_gather_by_rank(s: int, P: int) -> tuple[int, ...]:
    """Elements each rank sends in an all-gather whose result holds s elements in equal, padded chunks: (P - 1) chunks."""
    return ((whole("P", P) - 1) * padded_chunk(s, P),) * P
