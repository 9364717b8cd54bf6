"""This rank's place: rank, world size and the device it computes on."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Mesh:
    """One axis: every rank of the world, in order. A strategy that wants fewer asks its context for their group."""

    rank: int
    world_size: int
    device: torch.device

    def first(self, count: int) -> list[int]:
        """The first `count` ranks: where a strategy cannot use all of them, the others idle."""
        return list(range(min(count, self.world_size)))
