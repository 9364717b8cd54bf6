"""Every interactive figure by its name in code and URL."""

from __future__ import annotations

from app.figures import (
    accumulation,
    alpha_beta,
    buckets,
    collectives,
    global_batch,
    matrix_split,
    overlap,
    replicas,
    ring,
    ring_or_tree,
    tensor_or_data,
    transformer_layer,
    volume,
    what_moves,
)
from app.figures.engine import Figure

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        Figure("volume", "What one training step sends", volume.FIELDS, volume.compute),
        Figure("what_moves", "What moves in one training step", what_moves.FIELDS, what_moves.compute, live=False),
        Figure("ring", "A ring all-reduce, step by step", ring.FIELDS, ring.compute),
        Figure("collectives", "What each collective sends", collectives.FIELDS, collectives.compute),
        Figure("alpha_beta", "Two constants of a machine", alpha_beta.FIELDS, alpha_beta.compute),
        Figure("ring_or_tree", "Ring or tree", ring_or_tree.FIELDS, ring_or_tree.compute),
        Figure("replicas", "Why replicas stay equal", replicas.FIELDS, replicas.compute),
        Figure("accumulation", "Micro-steps, with one sync and with many", accumulation.FIELDS, accumulation.compute),
        Figure("buckets", "Which gradients share an all-reduce", buckets.FIELDS, buckets.compute),
        Figure("overlap", "All-reduces in flight during backward", overlap.FIELDS, overlap.compute),
        Figure("global_batch", "From GPUs to a global batch", global_batch.FIELDS, global_batch.compute),
        Figure("matrix_split", "One product on several GPUs", matrix_split.FIELDS, matrix_split.compute),
        Figure("tensor_or_data", "Tensor or data", tensor_or_data.FIELDS, tensor_or_data.compute),
        Figure("transformer_layer", "One layer of a Transformer", transformer_layer.FIELDS, transformer_layer.compute),
    )
}
