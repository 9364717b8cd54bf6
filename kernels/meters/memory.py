"""Bytes a rank holds, exactly: each storage counted once, however many tensors look at it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from kernels.spec import MemoryReport


def storage_bytes(tensors: Iterable[Tensor]) -> int:
    """Bytes of the distinct storages behind `tensors`; of a DTensor, the local shard's."""
    sizes: dict[int, int] = {}
    for tensor in tensors:
        storage = _local(tensor).untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
    return sum(sizes.values())


def saved_for_backward_bytes(step: Callable[[], None], parameters: Iterable[Tensor]) -> int:
    """Bytes of tensors that autograd keeps for backward during `step`, parameters left out: they are held anyway.

    Exact on CPU: every distinct storage packed by autograd's saved-tensor hooks, counted once.
    """
    held = {_local(parameter).untyped_storage().data_ptr() for parameter in parameters}
    saved: list[Tensor] = []  # kept until the step ends, so that no address is used twice

    def pack(tensor: Tensor) -> Tensor:
        if _local(tensor).untyped_storage().data_ptr() not in held:
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


def _local(tensor: Tensor) -> Tensor:
    to_local = getattr(tensor, "to_local", None)
    return tensor if to_local is None else to_local()
