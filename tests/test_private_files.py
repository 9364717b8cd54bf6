"""The secret that signs cookies is drawn once, whole, and for the server's user alone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from app.errors import StorageRefused
from app.private_files import SECRET_BYTES, read_or_make_secret
from tests.unprivileged import unprivileged


def test_a_secret_is_drawn_once_and_read_ever_after(tmp_path: Path) -> None:
    path = tmp_path / "data" / "secret"
    umask = os.umask(0)
    try:
        secret = read_or_make_secret(path)
    finally:
        os.umask(umask)
    assert len(secret) == SECRET_BYTES
    assert read_or_make_secret(path) == secret
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_two_servers_draw_different_secrets(tmp_path: Path) -> None:
    assert read_or_make_secret(tmp_path / "one") != read_or_make_secret(tmp_path / "two")


def test_processes_that_start_together_have_the_same_secret(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from app.private_files import read_or_make_secret\n"
        "print('ready', flush=True); sys.stdin.readline(); print(read_or_make_secret(Path(sys.argv[1])).hex())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "secret")]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    secrets = [process.communicate(timeout=120)[0] for process in processes]
    assert set(secrets) == {read_or_make_secret(tmp_path / "secret").hex() + "\n"}
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_somebody_who_is_first_by_a_hair_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process's file appears after we looked and before ours gets its name."""
    path = tmp_path / "secret"
    link = os.link

    def link_second(own: Path, target: Path) -> None:
        path.write_bytes(b"x" * SECRET_BYTES)
        path.chmod(0o600)
        link(own, target)

    monkeypatch.setattr(os, "link", link_second)
    assert read_or_make_secret(path) == b"x" * SECRET_BYTES
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_secret_that_others_may_read_or_write_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "secret"
    read_or_make_secret(path)
    path.chmod(mode)
    with pytest.raises(StorageRefused, match=f"mode {mode:04o}.*chmod 600 {path}"):
        read_or_make_secret(path)


def test_a_secret_that_is_too_short_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch(mode=0o600)
    path.write_bytes(b"short")
    with pytest.raises(StorageRefused, match="is 5 bytes long, and 32 are needed"):
        read_or_make_secret(path)
    assert path.read_bytes() == b"short"


def test_a_secret_out_of_reach_is_refused_in_words(tmp_path: Path) -> None:
    read_or_make_secret(tmp_path / "secret")
    tmp_path.chmod(0o700)
    with unprivileged(), pytest.raises(StorageRefused, match=r"Permission denied\. Set WORLDSIZE_SECRET_FILE"):
        read_or_make_secret(tmp_path / "secret")
