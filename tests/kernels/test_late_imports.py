"""A library that takes seconds to import: once in the life of a launch host, and only where a run needs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.errors import RunFailed
from app.runs.launch import LocalLauncher
from kernels import host, strategies
from kernels.spec import Experiment, RunSpec

pytestmark = pytest.mark.torchrun

SINGLE, MEGATRON = Experiment("single"), Experiment("megatron_core")


@pytest.fixture
def telling() -> Iterator[LocalLauncher]:
    with LocalLauncher(extra_strategies="tests.kernels.tells_modules") as launcher:
        yield launcher


def error_of(launcher: LocalLauncher, *experiments: Experiment) -> str:
    with pytest.raises(RunFailed) as failed:
        launcher.run(RunSpec(2, experiments))
    return str(failed.value)


def test_ranks_are_forked_with_the_library_only_once_a_run_needs_it(telling: LocalLauncher) -> None:
    assert "megatron.core is not here" in error_of(telling, SINGLE)
    assert "megatron.core is here" in error_of(telling, SINGLE, MEGATRON)
    assert "megatron.core is here" in error_of(telling, SINGLE), "and stays for every later run"
    assert len(list(Path(f"/proc/{telling.host_pid}/task").iterdir())) == 1, "a fork needs a host with one thread"


@pytest.mark.parametrize("error", [ImportError("no such library"), RuntimeError("built for another torch"),
                                   AttributeError("no attribute"), OSError("libcudart.so: no such file")])
def test_a_library_that_cannot_be_imported_is_left_to_the_rank_that_needs_it(
        monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    asked = []

    def broken() -> None:
        asked.append("megatron_core")
        raise error

    monkeypatch.setitem(strategies.LATE_IMPORTS, "megatron_core", broken)
    host.import_late(RunSpec(2, (SINGLE,)))
    assert asked == []
    host.import_late(RunSpec(2, (SINGLE, MEGATRON)))
    assert asked == ["megatron_core"]


def test_every_late_import_belongs_to_a_strategy() -> None:
    assert strategies.LATE_IMPORTS.keys() <= strategies.STRATEGIES.keys()
