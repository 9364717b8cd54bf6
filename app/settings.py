"""Settings: read from the environment once, checked, frozen and passed down. The only reader of os.environ."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Container
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from app.errors import SettingFault, SettingsRefused
from kernels import spec

PREFIX = "WORLDSIZE_"
COURSE_DIR = Path(__file__).resolve().parent.parent / "lessons"

Network = IPv4Network | IPv6Network
HOST_NAME = re.compile(r"[0-9a-z_-]+(\.[0-9a-z_-]+)*")
# What may stand in frame-ancestors: a keyword, or an origin with an optional leading wildcard label and port.
FRAME_SOURCE = re.compile(r"'self'|'none'|https?://(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:\d{1,5})?")


def _setting(default: Any, meaning: str, allowed: str, **limits: Any) -> Any:
    """A field whose title says what it means and whose description says what is allowed; both are shown to operators."""
    return Field(default, title=meaning, description=allowed, validate_default=True, **limits)


class Settings(BaseSettings):
    """One frozen object, made by `load` and handed to whoever needs it.

    Each field is the environment variable WORLDSIZE_<NAME IN CAPITALS> and the flag of the same name of the commands.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid", hide_input_in_errors=True)

    host: str = _setting("127.0.0.1", "address to listen on", "a host name or an IP address", pattern=r"^[0-9A-Za-z.:_-]+$")
    port: int = _setting(8000, "port to listen on", "a whole number from 1 to 65535", ge=1, le=65535)
    data_dir: Path = _setting(Path("var"), "folder of the database and the secret", "the path of a folder")
    database_url: str = _setting(
        "", "database", "empty for SQLite in the data folder, or sqlite:///FILE, or postgresql://USER@HOST/NAME", repr=False
    )
    content_dirs: Annotated[tuple[Path, ...], NoDecode] = _setting(
        (), "folders of your own lessons, beside the course's", f"folders that exist, separated by '{os.pathsep}'"
    )
    runs: bool = _setting(True, "whether lessons can start real jobs (needs torch)", "on or off")
    max_world_size: int = _setting(
        spec.MAX_WORLD_SIZE,
        "most GPUs of one run",
        f"a whole number from 1 to {spec.MAX_WORLD_SIZE}",
        ge=1,
        le=spec.MAX_WORLD_SIZE,
    )
    run_seconds: float = _setting(60.0, "time limit of one run", "seconds, from 5 to 3600", ge=5, le=3600)
    concurrency: int = _setting(1, "runs that a worker carries out at a time", "a whole number from 1 to 64", ge=1, le=64)
    run_quota: int = _setting(60, "runs one learner may start in an hour", "a whole number from 0 to 100000", ge=0, le=100_000)
    keep_runs_days: int = _setting(
        90, "days after which a run that has ended is deleted", "a whole number from 1 to 36500", ge=1, le=36_500
    )
    answer_quota: int = _setting(
        600, "answers one learner may send in an hour", "a whole number from 1 to 100000", ge=1, le=100_000
    )
    learner_quota: int = _setting(
        3000, "new learners from one network address in an hour", "a whole number from 1 to 1000000", ge=1, le=1_000_000
    )
    metrics: bool = _setting(False, "whether /metrics answers, for Prometheus", "on or off")
    launcher: Literal["local"] = _setting("local", "what starts the jobs", "local: jobs start on the worker's own machine")
    secret_file: Path | None = _setting(None, "file of the bytes that sign cookies", "the path of a file with mode 600")
    hosts: Annotated[tuple[str, ...], NoDecode] = _setting(
        (),
        "names under which the pages are reached, beside this machine's own; a page asked for by another is refused",
        "host names or IP addresses without port, separated by commas",
    )
    trusted_proxies: Annotated[tuple[Network, ...], NoDecode] = _setting(
        (),
        "proxies whose X-Forwarded headers are believed",
        "IP addresses or networks, separated by commas; never the whole internet, or anybody could choose an address",
    )
    frame_ancestors: Annotated[tuple[str, ...], NoDecode] = _setting(
        ("'none'",),
        "sites that may show pages in a frame",
        "'none', 'self', or origins such as https://lms.example.org, separated by spaces",
    )

    @classmethod
    def load(cls, **flags: Any) -> Settings:
        """From the environment, with the flags of a command taking precedence; a flag that is None was not given.

        Raises SettingsRefused with every variable that cannot be used, also one with the prefix that does not exist.
        """
        unknown = [name for name in os.environ if name.startswith(PREFIX) and _field(name) not in cls.model_fields]
        faults = [_unknown_fault(name) for name in sorted(unknown)]
        typed = {name: value for name, value in flags.items() if value is not None}
        try:
            settings = cls(**typed)
        except ValidationError as error:
            faults += [_value_fault(str(detail["loc"][0]), detail["input"], typed) for detail in error.errors()]
        if faults:
            raise SettingsRefused(faults)
        return settings

    @property
    def storage_url(self) -> str:
        """Where learners' work is kept: the URL given, or a SQLite file in the data folder."""
        return self.database_url or f"sqlite:///{self.data_dir.absolute() / 'worldsize.sqlite3'}"

    @property
    def signing_secret_file(self) -> Path:
        """The file given, or `secret` in the data folder."""
        return self.secret_file or self.data_dir / "secret"

    @property
    def course_dirs(self) -> tuple[Path, ...]:
        """Every folder with lessons: the course's own first, then the operator's."""
        return (COURSE_DIR, *self.content_dirs)

    @property
    def known_hosts(self) -> frozenset[str] | None:
        """Names that a request may ask for beside this machine's own; None where any may.

        Where nobody names any, none is added if we listen on loopback: a page of another site could have its own name lead
        there, and would be taken for ours. On other addresses, and behind a proxy, only the operator knows the names.
        """
        if self.hosts:
            return frozenset(self.hosts)
        return frozenset() if is_this_machine(self.host) and not self.trusted_proxies else None

    @field_validator("content_dirs", mode="before")
    @classmethod
    def _split_paths(cls, value: object) -> object:
        return [part for part in value.split(os.pathsep) if part] if isinstance(value, str) else value

    @field_validator("content_dirs")
    @classmethod
    def _folders_exist(cls, value: tuple[Path, ...]) -> tuple[Path, ...]:
        if missing := [str(folder) for folder in value if not folder.is_dir()]:
            raise ValueError(f"no folder {missing[0]}")
        return value

    @field_validator("database_url")
    @classmethod
    def _known_database(cls, value: str) -> str:
        """Normalised to the driver we ship. A SQLite URL without a file would forget everything at the end."""
        if not value:
            return value
        try:
            url = make_url(re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", value))
        except ArgumentError as error:
            raise ValueError(str(error)) from error
        if url.drivername not in ("sqlite", "postgresql+psycopg") or not url.database or url.database == ":memory:":
            raise ValueError("not a SQLite file or a PostgreSQL database")
        return url.render_as_string(hide_password=False)

    @field_validator("hosts", mode="before")
    @classmethod
    def _split_names(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(part.strip().strip("[]").lower() for part in value.split(",") if part.strip())

    @field_validator("hosts")
    @classmethod
    def _are_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(HOST_NAME.fullmatch(name) or _is_address(name) for name in value):
            raise ValueError("not a list of host names")
        return value

    @field_validator("trusted_proxies", mode="before")
    @classmethod
    def _split_networks(cls, value: object) -> object:
        parts = [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value
        return tuple(ip_network(part) for part in parts) if isinstance(parts, (list, tuple)) else parts

    @field_validator("trusted_proxies")
    @classmethod
    def _not_everybody(cls, value: tuple[Network, ...]) -> tuple[Network, ...]:
        if any(network.prefixlen == 0 for network in value):
            raise ValueError("trusts everybody")
        return value

    @field_validator("frame_ancestors", mode="before")
    @classmethod
    def _split_sources(cls, value: object) -> object:
        return value.split() if isinstance(value, str) else value

    @field_validator("frame_ancestors")
    @classmethod
    def _are_sources(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """Checked because the words go into a response header."""
        alone = "'none'" not in value or len(value) == 1
        if not value or not alone or not all(FRAME_SOURCE.fullmatch(source) for source in value):
            raise ValueError("not a list of frame sources")
        return value


def is_this_machine(host: str) -> bool:
    """Whether a host is loopback by its name or address, whatever any name server says."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    return _is_address(host) and ip_address(host).is_loopback


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _field(variable: str) -> str:
    return variable.removeprefix(PREFIX).lower()


def _unknown_fault(variable: str) -> SettingFault:
    """The value of a misspelt variable is not repeated: it may have been meant as a database URL with a password."""
    close = difflib.get_close_matches(_field(variable), Settings.model_fields, n=1)
    all_variables = ", ".join(PREFIX + field.upper() for field in Settings.model_fields)
    hint = f"did you mean {PREFIX}{close[0].upper()}?" if close else f"the settings are {all_variables}"
    return SettingFault(variable, "...", f"there is no such setting; {hint}")


def _value_fault(field: str, value: object, typed: Container[str]) -> SettingFault:
    """Named as it was given, as a flag or a variable. A database URL may hold a password, so it is not repeated either."""
    name = f"--{field.replace('_', '-')}" if field in typed else PREFIX + field.upper()
    shown = "..." if field == "database_url" else str(value)
    return SettingFault(name, shown, f"must be {Settings.model_fields[field].description}")
