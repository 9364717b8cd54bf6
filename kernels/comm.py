"""The one door to torch.distributed for hand-written strategies. It counts what passes; the sockets are counted elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch.distributed as dist
from torch import Tensor

Message = tuple[Tensor, int]  # what is sent or where it is received, and the rank at the other end


@dataclass
class Calls:
    """Calls by collective, and the bytes this rank handed over to be sent (not what an algorithm makes of them).

    Counted per call: the buffer of an all-reduce, the whole input of a reduce-scatter or all-to-all, the own part of an
    all-gather, a broadcast at its source only, a message at its sender.
    """

    counts: Counter[str] = field(default_factory=Counter)
    payload_bytes: int = 0
    counting: bool = True

    def record(self, collective: str, handed_over: Tensor | None) -> None:
        if self.counting:
            self.counts[collective] += 1
            self.payload_bytes += 0 if handed_over is None else handed_over.numel() * handed_over.element_size()

    def clear(self) -> None:
        self.counts.clear()
        self.payload_bytes = 0


class Comm:
    """Collectives and messages within one group of ranks. Every rank named here is a rank within the group."""

    def __init__(self, group: dist.ProcessGroup, calls: Calls) -> None:
        self.group = group
        self.calls = calls
        self.rank = dist.get_rank(group)
        self.size = dist.get_world_size(group)

    def all_reduce(self, tensor: Tensor) -> None:
        """Replace `tensor` on every rank by the sum over ranks."""
        self.calls.record("all_reduce", tensor)
        dist.all_reduce(tensor, group=self.group)

    def all_gather(self, gathered: Tensor, own: Tensor) -> None:
        """gathered = the parts of all ranks in order; gathered.numel() = size * own.numel()."""
        self.calls.record("all_gather", own)
        dist.all_gather_single(gathered, own, group=self.group)

    def reduce_scatter(self, own: Tensor, whole: Tensor) -> None:
        """own = this rank's part of the sum of `whole` over ranks; whole.numel() = size * own.numel()."""
        self.calls.record("reduce_scatter", whole)
        dist.reduce_scatter_single(own, whole, group=self.group)

    def broadcast(self, tensor: Tensor, source: int) -> None:
        """Give every rank the tensor of rank `source`."""
        self.calls.record("broadcast", tensor if self.rank == source else None)
        dist.broadcast(tensor, group_src=source, group=self.group)

    def all_to_all(self, received: Tensor, sent: Tensor, receive_sizes: Sequence[int], send_sizes: Sequence[int]) -> None:
        """Part i of `sent` goes to rank i; part i of `received` comes from rank i. Sizes in elements of dim 0."""
        self.calls.record("all_to_all", sent)
        dist.all_to_all_single(received, sent, list(receive_sizes), list(send_sizes), group=self.group)

    def send(self, tensor: Tensor, to: int) -> None:
        """Send and wait until the tensor may be written again."""
        self.calls.record("send", tensor)
        dist.send(tensor, group_dst=to, group=self.group)

    def receive(self, tensor: Tensor, source: int) -> None:
        """Wait for a tensor of this shape from rank `source`."""
        self.calls.record("receive", None)
        dist.recv(tensor, group_src=source, group=self.group)

    def isend(self, tensor: Tensor, to: int) -> dist.Work:
        """Begin to send; `tensor` must not change before the returned work is waited for."""
        self.calls.record("send", tensor)
        work = dist.isend(tensor, group_dst=to, group=self.group)
        if work is None:
            raise RuntimeError("this rank is not in the group it communicates in")
        return work

    def exchange(self, receives: Sequence[Message], sends: Sequence[Message]) -> None:
        """Receive and send all of these messages at once, and wait for them.

        As one batch: NCCL connects two ranks at their first message and waits for the other one meanwhile, so a ring in which
        each rank begins by itself to receive would wait all round. gloo takes the messages one by one, in this order.
        """
        for _ in receives:
            self.calls.record("receive", None)
        for tensor, _ in sends:
            self.calls.record("send", tensor)
        batch = [dist.P2POp(dist.irecv, tensor, group=self.group, group_peer=source) for tensor, source in receives]
        batch += [dist.P2POp(dist.isend, tensor, group=self.group, group_peer=to) for tensor, to in sends]
        for work in dist.batch_isend_irecv(batch) if batch else ():
            work.wait()
