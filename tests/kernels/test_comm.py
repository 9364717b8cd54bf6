"""What our own collectives ask torch.distributed for, seen on a group that carries nothing: the order NCCL would get."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from kernels import ring
from kernels.comm import Calls, Comm

WORLD_SIZE = 4
Batch = list[tuple[str, int]]  # irecv or isend, and the rank at the other end


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[Batch]:
    """Every batch asked for, in order."""
    asked: list[Batch] = []

    def note(operations: list[dist.P2POp]) -> list[dist.Work]:
        asked.append([(operation.op.__name__, operation.group_peer) for operation in operations])
        return []

    monkeypatch.setattr(dist, "batch_isend_irecv", note)
    return asked


@pytest.fixture(params=range(WORLD_SIZE))
def comm(request: pytest.FixtureRequest) -> Iterator[Comm]:
    """Each rank of a world in turn, without the others."""
    dist.init_process_group("fake", rank=request.param, world_size=WORLD_SIZE, store=FakeStore())
    assert dist.group.WORLD is not None
    yield Comm(dist.group.WORLD, Calls())
    dist.destroy_process_group()


def test_in_each_step_of_a_ring_what_is_sent_and_what_is_received_are_one_batch(comm: Comm, batches: list[Batch]) -> None:
    ring.ring_all_reduce(torch.zeros(8), comm)
    left, right = (comm.rank - 1) % WORLD_SIZE, (comm.rank + 1) % WORLD_SIZE
    assert batches == [[("irecv", left), ("isend", right)]] * 2 * (WORLD_SIZE - 1)
    assert comm.calls.counts == {"receive": 6, "send": 6}
    assert comm.calls.payload_bytes == 6 * 2 * 4


def test_each_step_of_an_all_to_all_is_one_batch(comm: Comm, batches: list[Batch]) -> None:
    ring.pairwise_all_to_all(torch.zeros(8), comm)
    assert [sorted(kind for kind, _ in batch) for batch in batches] == [["irecv", "isend"]] * (WORLD_SIZE - 1)


def test_a_rank_with_nothing_to_exchange_asks_for_nothing(comm: Comm, batches: list[Batch]) -> None:
    ring.send_to_next(torch.zeros(8), comm)
    assert batches == {0: [[("isend", 1)]], 1: [[("irecv", 0)]]}.get(comm.rank, [])
