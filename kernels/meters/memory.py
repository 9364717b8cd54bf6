"""Bytes a rank holds, exactly: each storage counted once, however many tensors look at it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from kernels.spec import MemoryReport


def storage_bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes of the distinct storages behind `tensors`; of a DTensor, the local shard's."""
    sizes = {storage.data_ptr(): storage.nbytes() for tensor in tensors for storage in _storages(tensor)}
    return sum(sizes.values())


def saved_for_backward_bytes(step: Callable[[], None], parameters: Iterable[Tensor]) -> int:
    """Bytes of tensors that autograd keeps for backward during `step`, parameters left out: they are held anyway.

    Exact on CPU: every distinct storage packed by autograd's saved-tensor hooks, counted once.
    """
    held = {storage.data_ptr() for parameter in parameters for storage in _storages(parameter)}
    saved: list[Tensor] = []  # kept until the step ends, so that no address is used twice

    def pack(tensor: Tensor) -> Tensor:
        if not any(storage.data_ptr() in held for storage in _storages(tensor)):
            saved.append(tensor.detach())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        step()
    return storage_bytes(saved)


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
