"""compose.yaml read as podman flags, so that what is tested is what `docker compose up` would start."""

from __future__ import annotations

import re
import resource
from collections.abc import Mapping
from typing import Any

import yaml

from tests.image.build import ROOT

VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")
MOST_PROCESSES = 4096
# Left to the engine, or to the test itself: how containers are named, restarted, published and joined to networks.
NOT_FLAGS = frozenset({"image", "build", "pull_policy", "command", "ports", "networks", "network_mode", "restart",
                       "stop_grace_period", "logging", "deploy", "healthcheck", "profiles"})


def services(**variables: str) -> dict[str, dict[str, Any]]:
    """Every service, with all variables at their defaults but those named."""
    text = VARIABLE.sub(lambda found: variables.get(found[1], found[2]), (ROOT / "compose.yaml").read_text())
    described: dict[str, dict[str, Any]] = yaml.safe_load(text)["services"]
    return described


def flags(service: Mapping[str, Any]) -> list[str]:
    """What `podman run` has to be told. A key that nobody has translated is an error: it would go untested."""
    made: list[str] = []
    for key, value in service.items():
        if key not in NOT_FLAGS:
            made += TRANSLATIONS[key](value)
    return made


def limits() -> list[str]:
    """Limits that this machine can give: podman's own are more than a test inside a container may set."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return [f"--ulimit=nofile={files}:{files}", f"--ulimit=nproc={MOST_PROCESSES}:{MOST_PROCESSES}"]


def _repeated(flag: str) -> Any:
    return lambda values: [word for value in values for word in (flag, str(value))]


def _single(flag: str) -> Any:
    return lambda value: [flag, str(value)]


TRANSLATIONS: dict[str, Any] = {
    # podman would add writable file systems that Docker does not.
    "read_only": lambda on: ["--read-only", "--read-only-tmpfs=false"] if on else [],
    "tmpfs": _repeated("--tmpfs"),
    "cap_drop": _repeated("--cap-drop"),
    "security_opt": lambda options: [f"--security-opt={option.removesuffix(':true')}" for option in options],
    "environment": lambda pairs: [f"--env={name}={value or ''}" for name, value in pairs.items()],
    "volumes": _repeated("--volume"),
    "mem_limit": _single("--memory"),
    "shm_size": _single("--shm-size"),
    "ulimits": lambda values: [f"--ulimit={name}={value}:{value}" for name, value in values.items()],
    "pids_limit": _single("--pids-limit"),
}
