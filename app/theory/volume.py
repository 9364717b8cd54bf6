"""How much was sent, by whom, and why two answers differ."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction


@dataclass(frozen=True)
class Volume:
    """Elements sent in one step.

    `by_rank` lists all ranks, idle ones 0; None where a formula gives a total and does not say who sends it.
    `active_gpus` counts ranks that send, receive or compute.
    """

    by_rank: tuple[Fraction, ...] | None
    total: Fraction
    active_gpus: int

    @property
    def mean(self) -> Fraction:
        """Elements per active GPU."""
        return self.total / self.active_gpus

    @property
    def max(self) -> Fraction | None:
        """Elements of the GPU that sends most; None where `by_rank` is."""
        return None if self.by_rank is None else max(self.by_rank)


class Cause(StrEnum):
    """Why what runs sends something else than the lesson's formula says."""

    UNEVEN_CHUNKS = "uneven_chunks"
    UNEVEN_SEGMENTS = "uneven_segments"
    PADDING = "padding"
    REDUCE_SCATTER_AS_ALL_REDUCE = "reduce_scatter_as_all_reduce"
    IDLE_GPUS = "idle_gpus"
    LOCAL_BOUNDARIES = "local_boundaries"


CAUSE_TEXT: dict[Cause, str] = {
    Cause.UNEVEN_CHUNKS: "The buffer cannot be cut into one equally long chunk for each GPU, so some GPUs send more than "
                         "others; the total is the same.",
    Cause.UNEVEN_SEGMENTS: "gloo cuts the buffer into two segments for each GPU, and here they are not equally long, so some "
                           "GPUs send more than others; the total is the same.",
    Cause.PADDING: "The buffer is filled up with zeros until every GPU’s chunk is equally long, and the zeros travel too.",
    Cause.REDUCE_SCATTER_AS_ALL_REDUCE: "PyTorch’s gloo backend runs a whole all-reduce in place of a reduce-scatter, and "
                                        "each GPU keeps its own chunk of the result.",
    Cause.IDLE_GPUS: "A matrix of width H has H rows, and H columns, to hand out; with more GPUs than that the rest hold "
                     "nothing and send nothing.",
    Cause.LOCAL_BOUNDARIES: "With fewer GPUs than layers, neighbouring layers share a GPU, and a hand-over inside one GPU "
                            "does not touch the network.",
}
# These change who sends, and not how much all send together.
UNEVEN = frozenset({Cause.UNEVEN_CHUNKS, Cause.UNEVEN_SEGMENTS})


def spread_evenly(per_gpu: Fraction, active_gpus: int, world_size: int) -> Volume:
    """Every active GPU sends `per_gpu` elements, the others nothing."""
    by_rank = (per_gpu,) * active_gpus + (Fraction(0),) * (world_size - active_gpus)
    return Volume(by_rank, per_gpu * active_gpus, active_gpus)


def sent_by_rank(counts: tuple[int, ...], active_gpus: int, world_size: int) -> Volume:
    """The first ranks send `counts` elements, the others nothing."""
    by_rank = tuple(Fraction(count) for count in counts) + (Fraction(0),) * (world_size - len(counts))
    return Volume(by_rank, sum(by_rank, Fraction(0)), active_gpus)
