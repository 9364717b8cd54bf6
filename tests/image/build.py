"""Builds the image from the Dockerfile as it is, on a base made by debootstrap where no registry of images can be asked.

The base stands in for the official Python image: Debian of the same release, with its own python3. What the machine tells
pip (a mirror, a certificate, wheels on disk) is mounted while building and leaves no trace in the image's settings.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path

from tests.image.engine import Engine, StepFailed, run

ROOT = Path(__file__).resolve().parent.parent.parent
REGISTRY = "docker.io/library/"
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
PACKAGES = "ca-certificates,python3,python3-venv,python3-pip"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# What a build may need of pip's settings. An index on disk refers to files elsewhere and is left out.
PIP_KEYS = ("index-url", "extra-index-url", "find-links", "cert", "trusted-host", "proxy", "timeout")


def base_name() -> str:
    """The image that the Dockerfile starts from. All its stages start from one, or from each other."""
    bases = set(re.findall(r"^FROM (\S+:\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    if len(bases) != 1:
        raise StepFailed(f"The Dockerfile starts from {', '.join(sorted(bases)) or 'nothing'}; one base was expected.")
    return f"{REGISTRY}{bases.pop()}"


def make_base(engine: Engine) -> str:
    """The stand-in under the official name, made once and kept."""
    name = base_name()
    if name in engine.buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
        return "kept from an earlier run"
    release = name.rpartition("-")[2]
    container = engine.buildah("from", "scratch").strip()
    try:
        root = engine.buildah("mount", container).strip()
        run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", release, root, MIRROR)
        run("rm", "-rf", f"{root}/var/cache/apt", f"{root}/var/lib/apt/lists")
        engine.buildah("umount", container)
        engine.buildah("config", "--env", f"PATH={PATH}", "--cmd", '["/bin/bash"]', container)
        engine.buildah("commit", "--quiet", container, name)
    finally:
        engine.buildah("rm", container)
    return f"debootstrap {release}, {megabytes(engine, name)} MB"


def build(engine: Engine, torch: str) -> str:
    """`docker build --build-arg TORCH=...`, with what this machine's pip needs. Returns the image's name."""
    name = f"worldsize:{torch}"
    settings = pip_settings()
    arguments = ["--build-arg", f"TORCH={torch}"]
    if torch == "cpu" and has_torch_wheel(settings.get("find-links", "")):
        arguments += ["--build-arg", "TORCH_INDEX="]
    engine.buildah("bud", "--quiet", "--pull-never", "--layers", "--format", "docker", *_pip_volumes(engine, settings),
                   *arguments, "--tag", name, "--file", str(ROOT / "Dockerfile"), str(ROOT))
    return name


def megabytes(engine: Engine, image: str) -> int:
    """As `docker images` counts: all layers, unpacked."""
    return round(int(engine.podman("image", "inspect", "--format", "{{.Size}}", image)) / 1e6)


def pip_settings() -> dict[str, str]:
    """What pip is told here by files and by the environment, the latter last because it wins."""
    listed = run(sys.executable, "-m", "pip", "config", "list").splitlines()
    settings: dict[str, str] = {}
    for line in sorted(listed, key=lambda line: line.startswith(":env:")):
        name, _, quoted = line.partition("=")
        key = name.rpartition(".")[2].removeprefix("default-")
        words = [word for word in ast.literal_eval(quoted).split() if not word.startswith("file:")]
        if key in PIP_KEYS and words:
            settings[key] = "\n    ".join(words)
    return settings


def has_torch_wheel(find_links: str) -> bool:
    """Whether pip finds a CPU build of torch on this machine, so that no further index is needed."""
    return any(folder.is_dir() and any(folder.glob("torch-*+cpu-*.whl")) for folder in map(Path, find_links.split()))


def _pip_volumes(engine: Engine, settings: dict[str, str]) -> list[str]:
    config = engine.folder / "pip.conf"
    config.write_text("[global]\n" + "".join(f"{key} = {value}\n" for key, value in settings.items()))
    named = {word for key in ("find-links", "cert") for word in settings.get(key, "").split()}
    mounts = [f"{path}:{path}:ro" for path in sorted(named) if Path(path).is_absolute() and Path(path).exists()]
    return [word for mount in [f"{config}:/etc/pip.conf:ro", *mounts] for word in ("--volume", mount)]


def clean(engine: Engine) -> None:
    """Images and containers of this test go, the base stays."""
    engine.podman("rm", "--all", "--force", "--time", "0")
    engine.podman("volume", "rm", "--all", "--force")
    if os.environ.get("KEEP") != "1":
        for image in engine.buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
            if image.startswith("localhost/worldsize:"):
                engine.buildah("rmi", "--force", image)
        engine.buildah("rmi", "--prune", "--force")
