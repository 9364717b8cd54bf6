"""The cards of all formulas: title, LaTeX, assumptions and sources, one module a concept."""

from __future__ import annotations

from app.theory.cards import (
    batch,
    buckets,
    collectives,
    data_parallel,
    latency,
    loss,
    pipeline_parallel,
    tensor_parallel,
    units,
    zero,
)
from app.theory.formula import Formula

CARDS: tuple[Formula, ...] = (
    units.CARDS
    + collectives.CARDS
    + latency.CARDS
    + data_parallel.CARDS
    + buckets.CARDS
    + tensor_parallel.CARDS
    + pipeline_parallel.CARDS
    + zero.CARDS
    + batch.CARDS
    + loss.CARDS
)
