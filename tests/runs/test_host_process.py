"""The log of a launch host: read from its end, and begun anew between runs before it grows large."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.runs import host_process
from app.runs.host_process import LOG_LINES, LOG_TAIL_BYTES, LONGEST_LOG_BYTES, HostProcess
from app.runs.launch import LocalLauncher
from kernels.spec import Experiment, RunSpec

pytestmark = pytest.mark.torchrun
SMALL = RunSpec(1, (Experiment("single"),), time_limit_seconds=600.0)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostProcess]:
    """Ends before it has imported anything; its log stays."""
    process = HostProcess(tmp_path / "host", "tests.no_such_module")
    yield process
    process.kill()


def log_of(folder: Path) -> Path:
    return folder / "host.log"


def test_the_last_lines_of_a_long_log_are_read_without_the_rest(host: HostProcess, tmp_path: Path) -> None:
    host.kill()
    log_of(tmp_path / "host").write_bytes(b"early \xff\n" * LONGEST_LOG_BYTES + b"\n".join([b"late"] * LOG_LINES))
    assert host.log_tail() == "\n".join(["late"] * LOG_LINES)
    log_of(tmp_path / "host").write_bytes(b"x" * (2 * LOG_TAIL_BYTES))
    assert len(host.log_tail()) == LOG_TAIL_BYTES


def test_a_log_that_is_missing_has_no_last_lines(host: HostProcess, tmp_path: Path) -> None:
    host.kill()
    log_of(tmp_path / "host").unlink()
    assert host.log_tail() == ""


def test_a_long_log_begins_anew_with_the_next_run_and_not_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalLauncher(scratch_parent=tmp_path) as launcher:
        launcher.run(SMALL)
        assert launcher.scratch is not None
        [log] = launcher.scratch.rglob("host.log")
        with log.open("ab") as file:
            file.write(b"a line\n" * 1000)
        launcher.run(SMALL)
        assert log.stat().st_size >= 7000
        monkeypatch.setattr(host_process, "LONGEST_LOG_BYTES", 6999)
        host = launcher.host_pid
        launcher.run(SMALL)
        assert b"a line" not in log.read_bytes()
        assert launcher.host_pid == host
