"""Which backend a run gets and what NCCL is told. No GPU is needed to choose."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from kernels.backend import (
    NCCL_COUNTING,
    backend_environment,
    choose_backend,
    count_gpus,
    device_for,
    join,
    loopback_interface,
    transport,
)
from kernels.train import note_on, timed_step


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


@pytest.mark.parametrize(("wanted", "gpu_count", "chosen"), [("gloo", 8, "gloo"), ("nccl", 4, "nccl"), ("auto", 4, "nccl")])
def test_a_backend_that_is_wanted_is_chosen(wanted: str, gpu_count: int, chosen: str) -> None:
    assert choose_backend(4, gpu_count, nccl_built=True, wanted=wanted) == chosen


@pytest.mark.parametrize(("gpu_count", "built", "why"), [(3, True, "needs a GPU for each of 4 ranks, and there are 3"),
                                                         (4, False, "this torch has no NCCL")])
def test_nccl_where_it_cannot_be_had_is_refused_in_words(gpu_count: int, built: bool, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        choose_backend(4, gpu_count, nccl_built=built, wanted="nccl")


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
        "NCCL_SOCKET_IFNAME": "=lo", "NCCL_RAS_ENABLE": "0",
        "NCCL_MIN_NCHANNELS": "1", "NCCL_MAX_NCHANNELS": "1", "NCCL_MAX_P2P_NCHANNELS": "1",
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


GPU, CPU = torch.device("cuda", 2), torch.device("cpu")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What CUDA and the process group are asked for, in order."""
    calls: list[Any] = []
    monkeypatch.setattr(torch.cuda, "set_device", lambda device: calls.append(("set_device", device)))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: calls.append(("synchronize", device)))
    monkeypatch.setattr(dist, "init_process_group",
                        lambda backend, **others: calls.append((backend, others["device_id"], others["world_size"])))
    return calls


def test_nccl_gets_one_gpu_a_rank_and_gloo_the_cpu() -> None:
    assert device_for("nccl", 2) == GPU
    assert device_for("gloo", 2) == CPU


def test_a_rank_takes_its_own_gpu_before_it_joins_and_names_it(asked: list[Any]) -> None:
    join("nccl", GPU, dist.HashStore(), rank=2, world_size=4, timeout=timedelta(seconds=1))
    assert asked == [("set_device", GPU), ("nccl", GPU, 4)]


def test_on_the_cpu_nothing_of_cuda_is_touched(asked: list[Any]) -> None:
    join("gloo", CPU, dist.HashStore(), rank=0, world_size=1, timeout=timedelta(seconds=1))
    timed_step(Step(asked), CPU)
    assert asked == [("gloo", None, 1), "step"]


class Step:
    """A strategy that notes its steps."""

    def __init__(self, calls: list[Any]) -> None:
        self.calls = calls

    def step(self) -> None:
        self.calls.append("step")

    def check(self) -> float:
        return 0.0

    def parameters(self) -> list[torch.Tensor]:
        return []

    def optimizer(self) -> None:
        return None


def test_a_step_begins_and_ends_with_an_idle_gpu(asked: list[Any]) -> None:
    timed_step(Step(asked), GPU)
    assert asked == [("synchronize", GPU), "step", ("synchronize", GPU)]


def test_on_a_gpu_the_report_says_that_it_has_no_timeline() -> None:
    assert note_on("", CPU) == ""
    assert note_on("calls are counted", CPU) == "calls are counted"
    assert note_on("calls are counted", GPU).startswith("calls are counted; there is no timeline")
