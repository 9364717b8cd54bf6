"""Which backend carries a run, and what NCCL is told: decided without waking CUDA, which does not survive a fork."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed as dist

AUTO = "auto"
GLOO = "gloo"
NCCL = "nccl"

# Inside one box NCCL would move data through NVLink or shared memory, where no socket sees it, and cut it as it likes.
# A counting run makes it a ring over TCP with the plain protocol, so that the same counters work as for gloo. One channel, for
# how many there are would depend on the bytes, and no keep-alives of its RAS subsystem between ranks.
NCCL_COUNTING = {
    "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_NET": "Socket",
    "NCCL_ALGO": "Ring",
    "NCCL_PROTO": "Simple",
    "NCCL_SOCKET_IFNAME": "=lo",
    "NCCL_MIN_NCHANNELS": "1",
    "NCCL_MAX_NCHANNELS": "1",
    "NCCL_MAX_P2P_NCHANNELS": "1",
    "NCCL_RAS_ENABLE": "0",
}


def count_gpus(environment: Mapping[str, str] = os.environ, root: Path = Path("/")) -> int:
    """CUDA devices that a process with this environment sees, read from the device files; `root` is for tests.

    CUDA_VISIBLE_DEVICES narrows the choice; CUDA reads it up to the first entry that it cannot use, an empty one included.
    """
    present = sum(1 for path in (root / "dev").glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name))
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return present
    usable: list[str] = []
    for entry in (part.strip() for part in visible.split(",")):
        by_number = entry.isdecimal() and int(entry) < present
        by_name = entry.startswith(("GPU-", "MIG-"))
        if entry in usable or not (by_number or by_name):
            break
        usable.append(entry)
    return min(len(usable), present)


def choose_backend(world_size: int, gpu_count: int, nccl_built: bool | None = None, wanted: str = AUTO) -> str:
    """NCCL where every rank gets a GPU of its own and torch was built with it, gloo everywhere else; or the one that is wanted.

    Raises ValueError where NCCL is wanted and cannot be had.
    """
    built = dist.is_nccl_available() if nccl_built is None else nccl_built
    possible = built and gpu_count >= world_size
    if wanted == NCCL and not possible:
        why = f"it needs a GPU for each of {world_size} ranks, and there are {gpu_count}" if built else "this torch has no NCCL"
        raise ValueError(f"backend = {NCCL}: {why}; choose {GLOO} or {AUTO}")
    return NCCL if possible and wanted != GLOO else GLOO


def device_for(backend: str, local_rank: int) -> torch.device:
    """NCCL needs one GPU a rank; gloo computes on the CPU."""
    return torch.device("cuda", local_rank) if backend == NCCL else torch.device("cpu")


def join(backend: str, device: torch.device, store: dist.Store, rank: int, world_size: int, timeout: timedelta) -> None:
    """Make the process group of the world.

    NCCL is told the device, and so connects all ranks at once: later, whichever few of them spoke first would wait for the
    others. That GPU is the current one from then on, or every rank would use the first.
    """
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=timeout,
                            device_id=device if device.type == "cuda" else None)


def finish_work(device: torch.device) -> None:
    """Wait for what the device has been given to do; a call on a GPU returns when it is enqueued, not when it is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def transport(backend: str, environment: Mapping[str, str] = os.environ) -> str:
    """What the bytes of this process travel through, as a report says it."""
    if backend == GLOO:
        return "loopback TCP"
    if all(environment.get(name) == value for name, value in NCCL_COUNTING.items()):
        return "loopback TCP, forced by " + " ".join(f"{name}={value}" for name, value in NCCL_COUNTING.items())
    return "NCCL's own choice (NVLink, shared memory or sockets)"


def backend_environment(backend: str, purpose: str) -> dict[str, str]:
    """Variables to set before the ranks of one box start. A timing run leaves NCCL alone.

    gloo is told its interface: else it asks for the address of the host's name, 15 s where no name server answers.
    Raises ValueError if `purpose` is neither "counting" nor "timing".
    """
    if purpose not in ("counting", "timing"):
        raise ValueError(f"purpose = {purpose!r}: must be counting or timing")
    if backend == GLOO:
        return {"GLOO_SOCKET_IFNAME": loopback_interface()}
    return dict(NCCL_COUNTING) if purpose == "counting" else {}


def loopback_interface() -> str:
    """The interface of 127.0.0.1: lo on Linux, lo0 on macOS."""
    return next(name for _, name in socket.if_nameindex() if re.fullmatch(r"lo\d*", name))
