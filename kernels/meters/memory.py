"""Bytes a rank holds, exactly: each storage counted once, however many tensors look at it."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from kernels.spec import MemoryReport


def storage_bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes of the distinct storages behind `tensors`; of a DTensor, the local shard's."""
    sizes = {storage.data_ptr(): storage.nbytes() for tensor in tensors for storage in _storages(tensor)}
    return sum(sizes.values())


def saved_for_backward_bytes(step: Callable[[], None], parameters: Iterable[Tensor]) -> int:
    """The most bytes of tensors that autograd keeps for backward at any moment of `step`, parameters left out.

    Parameters are held anyway. Exact on CPU: every distinct storage packed by autograd's saved-tensor hooks counts once,
    from the first time it is packed until backward has let go of it for the last time.
    """
    kept = _Kept({storage.data_ptr() for parameter in parameters for storage in _storages(parameter)})
    with torch.autograd.graph.saved_tensors_hooks(kept.pack, lambda packed: packed.tensor):
        step()
    return kept.most_bytes


class _Packed:
    """A tensor that autograd keeps. When this goes, autograd has let go of it."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class _Kept:
    """Bytes kept now, and the most there have been. A storage in `held` counts for nothing.

    While a storage is kept it is alive, so that no other one can have its address.
    """

    def __init__(self, held: set[int]) -> None:
        self.held = held
        self.times_packed: Counter[int] = Counter()
        self.bytes_now = self.most_bytes = 0

    def pack(self, tensor: Tensor) -> _Packed:
        packed = _Packed(tensor.detach())
        for storage in _storages(tensor):
            address, size = storage.data_ptr(), storage.nbytes()
            if address not in self.held:
                self.bytes_now += 0 if self.times_packed[address] else size
                self.times_packed[address] += 1
                weakref.finalize(packed, self.let_go, address, size).atexit = False
        self.most_bytes = max(self.most_bytes, self.bytes_now)
        return packed

    def let_go(self, address: int, size: int) -> None:
        self.times_packed[address] -= 1
        self.bytes_now -= 0 if self.times_packed[address] else size


def memory_report(parameters: list[Tensor], optimizer: torch.optim.Optimizer | None, saved_bytes: int) -> MemoryReport:
    """What this rank holds after a step."""
    state = optimizer.state.values() if optimizer is not None else ()
    return MemoryReport(
        parameter_bytes=storage_bytes(parameters),
        gradient_bytes=storage_bytes(parameter.grad for parameter in parameters if parameter.grad is not None),
        optimizer_bytes=storage_bytes(value for values in state for value in values.values() if isinstance(value, Tensor)),
        saved_for_backward_bytes=saved_bytes,
    )


def _storages(tensor: Tensor) -> list[torch.UntypedStorage]:
    """The memory behind a tensor: of a DTensor, or of a collective's result still under way, the plain tensors inside."""
    flatten = getattr(tensor, "__tensor_flatten__", None)
    if flatten is None:
        return [tensor.untyped_storage()]
    inside = [getattr(tensor, name) for name in flatten()[0]]
    return [storage for part in inside if isinstance(part, Tensor) for storage in _storages(part)]
