"""compose.yaml read as podman flags, so that what is tested is what `docker compose up` would start."""

from __future__ import annotations

import re
import resource
from collections.abc import Mapping
from typing import Any

import yaml

from tests.image.build import ROOT

VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")
# Left to the engine, or to the test itself: how containers are named, restarted, published and joined to networks.
NOT_FLAGS = frozenset({"image", "build", "command", "ports", "networks", "network_mode", "restart", "stop_grace_period",
                       "logging", "deploy", "healthcheck", "profiles"})


def services() -> dict[str, dict[str, Any]]:
    """Every service with all variables at their defaults."""
    text = (ROOT / "compose.yaml").read_text()
    described: dict[str, dict[str, Any]] = yaml.safe_load(VARIABLE.sub(r"\2", text))["services"]
    return described


def flags(service: Mapping[str, Any]) -> list[str]:
    """What `podman run` has to be told. A key that nobody has translated is an error: it would go untested."""
    made: list[str] = []
    for key, value in service.items():
        if key not in NOT_FLAGS:
            made += TRANSLATIONS[key](value)
    return made


def limits() -> list[str]:
    """This machine's own hard limits: without them podman asks for more than an unprivileged machine may give."""
    return [word for name, number in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC))
            for word in ("--ulimit", f"{name}={resource.getrlimit(number)[1]}:{resource.getrlimit(number)[1]}")]


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
