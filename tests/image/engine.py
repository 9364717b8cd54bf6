"""buildah and podman with storage of their own: nothing here touches other images or containers of this machine."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

WORKPLACE = Path(os.environ.get("TMPDIR", "/var/tmp")) / f"worldsize-image-{os.getuid()}"
PROGRAMS = ("buildah", "podman", "runc", "debootstrap")
NOTHING = Path(os.devnull)
LAST_LINES = 40
COMMAND_LETTERS = 400


class StepFailed(Exception):
    """What went wrong, in words for whoever ran make."""


def run(*command: str, env: Mapping[str, str] | None = None, allowed: tuple[int, ...] = (0,), limit: float = 1800,
        source: Path = NOTHING, target: Path | None = None) -> str:
    """The command's standard output, unless it goes into the file `target`; `source` is what it reads.

    Raises StepFailed with the end of all it said if it fails.
    """
    surroundings = {**os.environ, **(env or {})}
    with source.open("rb") as read, nullcontext(subprocess.PIPE) if target is None else target.open("wb") as written:
        done = subprocess.run(command, env=surroundings, stdin=read, stdout=written, stderr=subprocess.PIPE, text=True,
                              timeout=limit, check=False)
    printed = done.stdout or ""
    if done.returncode not in allowed:
        said = "\n".join((printed + done.stderr).splitlines()[-LAST_LINES:])
        raise StepFailed(f"{' '.join(command)[:COMMAND_LETTERS]}\nexit code {done.returncode}\n{said}")
    return printed


def require_tools() -> str:
    """Installs what is missing with apt; where that cannot be, says what to install."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    apt = f"apt-get install --no-install-recommends {' '.join(missing)}"
    if os.getuid() != 0:
        raise StepFailed("make image-test needs root: it makes a base image and containers without an engine."
                         + (f" It also needs {', '.join(missing)}: {apt}" if missing else ""))
    if not missing:
        return "there"
    if shutil.which("apt-get") is None:
        raise StepFailed(f"make image-test needs {', '.join(missing)}. On Debian and Ubuntu: {apt}")
    run("apt-get", "update")
    run("apt-get", "install", "--yes", "--no-install-recommends", *missing, env={"DEBIAN_FRONTEND": "noninteractive"})
    return f"installed {', '.join(missing)}"


def _hold_alone(folder: Path) -> None:
    """Until this process ends: two tests at once would clean up under each other's feet."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise StepFailed(f"Another make image-test is at work in {folder}.") from error


def overlay_works(folder: Path) -> bool:
    """Whether a file system can be laid over another in this folder: not everywhere inside a container."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        lower, upper, work, merged = (Path(scratch, name) for name in ("lower", "upper", "work", "merged"))
        for made in (lower, upper, work, merged):
            made.mkdir()
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        mount = ("mount", "-t", "overlay", "overlay", "-o", options, str(merged))
        works = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        if works:
            run("umount", str(merged))
        return works


@dataclass(frozen=True)
class Engine:
    """Where images lie and how its two programs are called."""

    folder: Path
    driver: str

    @classmethod
    def open(cls) -> Engine:
        """In a folder that belongs to us alone; with the overlay driver where it works, else vfs, which copies every layer."""
        WORKPLACE.mkdir(mode=0o700, parents=True, exist_ok=True)
        if WORKPLACE.stat().st_uid != os.getuid() or WORKPLACE.is_symlink():
            raise StepFailed(f"{WORKPLACE} belongs to somebody else. Set TMPDIR to a folder of your own.")
        _hold_alone(WORKPLACE)
        driver = "overlay" if overlay_works(WORKPLACE) else "vfs"
        roots = f'graphroot = "{WORKPLACE}/{driver}"\nrunroot = "{WORKPLACE}/{driver}-run"\n'
        (WORKPLACE / f"{driver}.conf").write_text(f'[storage]\ndriver = "{driver}"\n{roots}')
        return cls(WORKPLACE, driver)

    def buildah(self, *arguments: str) -> str:
        return run("buildah", *arguments, env=self._environment())

    def podman(self, *arguments: str, allowed: tuple[int, ...] = (0,), source: Path = NOTHING,
               target: Path | None = None) -> str:
        command = ("podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "none",
                   "--tmpdir", str(self.folder / "libpod"))
        return run(*command, *arguments, env=self._environment(), allowed=allowed, source=source, target=target)

    def _environment(self) -> dict[str, str]:
        return {"CONTAINERS_STORAGE_CONF": str(self.folder / f"{self.driver}.conf"), "STORAGE_DRIVER": self.driver,
                "BUILDAH_ISOLATION": "chroot"}
