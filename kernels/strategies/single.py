"""One process: the reference that every other strategy must agree with.

Split:       nothing.
Replicated:  nothing; rank 0 has the whole model and the whole batch of T tokens, the other ranks idle.
Sent:        nothing.
Predicted:   0 (`single` in app.theory.predictions).
"""

from __future__ import annotations

from kernels import model
from kernels.shards import layer
from kernels.strategies.base import Context, Strategy, Trained


class Single(Trained):
    """The whole model on rank 0."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, num_tokens=context.experiment.T)
        self.layers = model.stack(context.initial_weights())
        active = context.mesh.rank == 0
        self.train([(weight, layer(index)) for index, weight in enumerate(self.layers.parameters())] if active else [])


def build(context: Context) -> Strategy:
    return Single(context)
