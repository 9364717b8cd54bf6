"""Buckets of gradients: which parameters share an all-reduce in torch's DistributedDataParallel, and how large each is.

The rule itself is `kernels.schedule.fill_buckets`, which our own bucketed strategy executes; here are a real model's shapes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from app.theory.checks import whole
from kernels.schedule import DDP_BUCKET_BYTES, DDP_FIRST_BUCKET_BYTES, MIB, Bucket, fill_buckets

FP32_BYTES = 4


@dataclass(frozen=True)
class Parameter:
    """A trained tensor of a model, in the order in which the model registers it."""

    name: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def fp32_bytes(self) -> int:
        return FP32_BYTES * self.elements


def ddp_buckets(parameters: Sequence[Parameter], first_limit: int = DDP_FIRST_BUCKET_BYTES,
                limit: int = DDP_BUCKET_BYTES) -> tuple[Bucket, ...]:
    """The buckets of fp32 gradients in the order in which they are sent, with limits in bytes.

    As torch builds them after its first step, when it has seen in which order gradients get ready: last parameter first.
    Raises ValueError if a limit is below 1.
    """
    return fill_buckets([parameter.fp32_bytes for parameter in parameters],
                        [whole("first_limit", first_limit), whole("limit", limit)])


def resnet18_bytes() -> int:
    """Bytes of all gradients of ResNet-18 in fp32: 4 times its 11,689,512 parameters."""
    return sum(parameter.fp32_bytes for parameter in RESNET18)


def resnet18_num_buckets(bucket_mib: int) -> int:
    """All-reduces that carry ResNet-18's gradients when buckets after the first, of 1 MiB, are closed at `bucket_mib` MiB."""
    return len(_resnet18_buckets(bucket_mib, DDP_FIRST_BUCKET_BYTES // MIB))


def resnet18_bucket_bytes(bucket: int, bucket_mib: int, first_mib: int = DDP_FIRST_BUCKET_BYTES // MIB) -> int:
    """Bytes of the n-th all-reduce of ResNet-18's gradients, n = `bucket` = 1, 2, ...

    The first is closed at `first_mib` MiB, the others at `bucket_mib` MiB, each by the parameter that reaches the limit.
    Seen by pytorch issue 48880 on NCCL: 2,052,000, 28,852,224 and 15,853,824 bytes at 25 MiB.
    Raises ValueError if there are fewer buckets.
    """
    buckets = _resnet18_buckets(bucket_mib, first_mib)
    return buckets[whole("bucket", bucket, 1, len(buckets)) - 1].size


def _resnet18_buckets(bucket_mib: int, first_mib: int) -> tuple[Bucket, ...]:
    return ddp_buckets(RESNET18, whole("first_mib", first_mib) * MIB, whole("bucket_mib", bucket_mib) * MIB)


def _norm(name: str, channels: int) -> list[Parameter]:
    return [Parameter(f"{name}.weight", (channels,)), Parameter(f"{name}.bias", (channels,))]


def _conv(name: str, inside: int, outside: int, size: int) -> list[Parameter]:
    return [Parameter(f"{name}.weight", (outside, inside, size, size))]


def _basic_block(name: str, inside: int, outside: int) -> list[Parameter]:
    """Two 3 x 3 convolutions with their norms; a 1 x 1 convolution beside them where the width changes."""
    block = [*_conv(f"{name}.conv1", inside, outside, 3), *_norm(f"{name}.bn1", outside),
             *_conv(f"{name}.conv2", outside, outside, 3), *_norm(f"{name}.bn2", outside)]
    if inside != outside:
        block += [*_conv(f"{name}.downsample.0", inside, outside, 1), *_norm(f"{name}.downsample.1", outside)]
    return block


def _resnet18() -> tuple[Parameter, ...]:
    """He et al. 2015, arXiv 1512.03385, table 1, 18-layer column; names and order as in torchvision.models.resnet18."""
    widths = (64, 64, 128, 256, 512)
    parameters = [*_conv("conv1", 3, 64, 7), *_norm("bn1", 64)]
    for stage in range(1, 5):
        parameters += _basic_block(f"layer{stage}.0", widths[stage - 1], widths[stage])
        parameters += _basic_block(f"layer{stage}.1", widths[stage], widths[stage])
    return (*parameters, Parameter("fc.weight", (1000, 512)), Parameter("fc.bias", (1000,)))


RESNET18 = _resnet18()
