"""Which backend a run gets and what NCCL is told. No GPU is needed to choose."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernels.backend import (
    NCCL_COUNTING,
    backend_environment,
    choose_backend,
    count_gpus,
    loopback_interface,
    transport,
)


@pytest.fixture
def four_gpus(tmp_path: Path) -> Path:
    """A root with the device files of a box with four GPUs."""
    devices = tmp_path / "dev"
    devices.mkdir()
    for name in ("nvidia0", "nvidia1", "nvidia2", "nvidia3", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "null"):
        devices.joinpath(name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("world_size", "gpu_count", "chosen"),
    [(1, 0, "gloo"), (1, 1, "nccl"), (4, 3, "gloo"), (4, 4, "nccl"), (4, 8, "nccl"), (8, 4, "gloo")],
)
def test_nccl_is_chosen_only_when_every_rank_gets_a_gpu(world_size: int, gpu_count: int, chosen: str) -> None:
    assert choose_backend(world_size, gpu_count, nccl_built=True) == chosen


def test_a_torch_without_nccl_gets_gloo_on_any_box() -> None:
    assert choose_backend(2, 8, nccl_built=False) == "gloo"


def test_only_numbered_device_files_are_gpus(four_gpus: Path) -> None:
    assert count_gpus({}, four_gpus) == 4


def test_a_box_without_device_files_has_no_gpu(tmp_path: Path) -> None:
    assert count_gpus({}, tmp_path) == 0
    assert count_gpus({"CUDA_VISIBLE_DEVICES": "GPU-5ebe"}, tmp_path) == 0


@pytest.mark.parametrize(
    ("visible", "count"),
    [("", 0), ("-1", 0), ("0", 1), ("2,3", 2), ("0, 1, 2", 3), ("0,-1,1", 1), ("0,9,1", 1), ("1,1", 1), ("0,1,2,3,4", 4),
     ("GPU-5ebe,GPU-77aa", 2), ("MIG-4c", 1), ("none", 0)],
)
def test_visible_devices_are_read_as_cuda_reads_them(four_gpus: Path, visible: str, count: int) -> None:
    assert count_gpus({"CUDA_VISIBLE_DEVICES": visible}, four_gpus) == count


def test_a_counting_run_forces_nccl_onto_sockets_in_a_plain_ring() -> None:
    assert backend_environment("nccl", "counting") == {
        "NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_NET": "Socket", "NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple",
    }


def test_a_timing_run_leaves_nccl_alone() -> None:
    assert backend_environment("nccl", "timing") == {}


@pytest.mark.parametrize("purpose", ["counting", "timing"])
def test_gloo_is_told_the_loopback_interface_so_that_it_looks_up_no_name(purpose: str) -> None:
    assert backend_environment("gloo", purpose) == {"GLOO_SOCKET_IFNAME": loopback_interface()}


def test_an_unknown_purpose_is_an_error() -> None:
    with pytest.raises(ValueError, match="purpose = 'racing': must be counting or timing"):
        backend_environment("gloo", "racing")


def test_the_transport_says_what_was_forced() -> None:
    assert transport("gloo", {}) == "loopback TCP"  # see backend_environment: gloo is told the loopback interface
    assert transport("nccl", NCCL_COUNTING).startswith("loopback TCP, forced by NCCL_P2P_DISABLE=1")
    assert transport("nccl", {**NCCL_COUNTING, "NCCL_SHM_DISABLE": "0"}).startswith("NCCL's own choice")


def test_choosing_does_not_wake_cuda() -> None:
    program = ("import torch; from kernels import backend; backend.choose_backend(1, backend.count_gpus());"
               "print(torch.cuda.is_initialized())")
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "False\n"
