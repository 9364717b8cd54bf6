"""Folders that belong to one living process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from app.runs.scratch import scratch_folder

HOLDS = """
import sys
from pathlib import Path
from app.runs.scratch import scratch_folder
with scratch_folder(Path(sys.argv[1])) as folder:
    folder.joinpath("file").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


def holder(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_goes_with_its_block(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        folder.joinpath("file").touch()
        assert folder.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    process, theirs = holder(tmp_path)
    with scratch_folder(tmp_path) as ours:
        assert set(tmp_path.iterdir()) == {theirs, ours}
    process.communicate()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_process_is_swept(tmp_path: Path) -> None:
    process, theirs = holder(tmp_path)
    process.kill()
    process.communicate()
    assert theirs.exists()
    with scratch_folder(tmp_path) as ours:
        assert list(tmp_path.iterdir()) == [ours]


def test_other_folders_are_not_touched(tmp_path: Path) -> None:
    other = tmp_path / "worldsize-notes"
    other.mkdir()
    with scratch_folder(tmp_path):
        assert other.exists()
    assert list(tmp_path.iterdir()) == [other]


def test_a_folder_deleted_by_somebody_else_is_no_error(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        folder.rmdir()
    assert list(tmp_path.iterdir()) == []
