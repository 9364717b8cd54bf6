"""Data parallel by the library: torch's DistributedDataParallel around the single-device model.

Split:       the global batch of P*T tokens, T to each rank.
Replicated:  parameters, gradients, optimizer state.
Sent:        during backward, buckets of gradients, each in one all-reduce; the toy fits one bucket of L*H*H elements.
Predicted:   2(P-1)/P * L*H*H elements sent by each GPU (`data_parallel.volume`).
"""

from __future__ import annotations

from torch.nn.parallel import DistributedDataParallel

from kernels import model
from kernels.strategies.base import Context, Strategy, Trained, layer

# DDP cuts its buckets by bytes. A cap in proportion to the dtype keeps the number of messages equal in fp32 and fp64, and
# with it the headers, so that their difference is payload. (The first bucket's 1 MiB cannot be set: the largest toy in
# fp64, 16 layers of 64 x 64, fills half of it.)
BUCKET_MIB_PER_BYTE = 25 / 4


class DDP(Trained):
    """DDP averages over ranks, so each rank divides its loss by its own T tokens: the mean is the global gradient."""

    def __init__(self, context: Context) -> None:
        experiment, mesh = context.experiment, context.mesh
        super().__init__(context, num_tokens=mesh.world_size * experiment.T)
        self.mine = self.batch.part(first=mesh.rank * experiment.T, count=experiment.T)
        layers = model.stack(context.initial_weights())
        self.replica = DistributedDataParallel(layers, bucket_cap_mb=BUCKET_MIB_PER_BYTE * context.dtype.itemsize)
        self.train([(weight, layer(index)) for index, weight in enumerate(layers.parameters())])

    def forward_backward(self) -> None:
        with self.context.timeline.interval("forward"):
            output = self.replica(self.mine.input_TH)
            loss = model.squared_error(output, self.mine.target_TH, self.context.experiment.T)
        with self.context.timeline.interval("backward"):
            loss.backward()


def build(context: Context) -> Strategy:
    return DDP(context)
