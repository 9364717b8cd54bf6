"""Settings come from the environment, once; what cannot be used is refused by name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.errors import SettingsRefused
from app.settings import COURSE_DIR, Settings


@pytest.fixture(autouse=True)
def _empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of whoever runs the tests."""
    for name in os.environ:
        if name.startswith("WORLDSIZE_"):
            monkeypatch.delenv(name)


def test_the_defaults_are_a_private_server_on_this_machine() -> None:
    settings = Settings.load()
    assert (settings.host, settings.port, settings.data_dir) == ("127.0.0.1", 8000, Path("var"))
    assert (settings.max_world_size, settings.run_seconds, settings.launcher, settings.runs) == (8, 60, "local", True)
    assert settings.storage_url == f"sqlite:///{Path.cwd()}/var/worldsize.sqlite3"
    assert settings.signing_secret_file == Path("var/secret")
    assert settings.course_dirs == (COURSE_DIR,)
    assert settings.frame_ancestors == ("'none'",)
    assert settings.trusted_proxies == ()
    assert settings.known_hosts == frozenset()


@pytest.mark.parametrize(("flags", "known"), [
    ({}, frozenset()),
    ({"host": "::1"}, frozenset()),
    ({"host": "localhost"}, frozenset()),
    ({"host": "0.0.0.0"}, None),
    ({"host": "192.168.1.4"}, None),
    ({"host": "course.example.org"}, None),
    ({"trusted_proxies": "127.0.0.1"}, None),
    ({"host": "0.0.0.0", "hosts": "course.example.org"}, {"course.example.org"}),
    ({"trusted_proxies": "127.0.0.1", "hosts": "course.example.org"}, {"course.example.org"}),
])
def test_names_are_checked_where_they_are_known(flags: dict[str, str], known: frozenset[str] | None) -> None:
    """On loopback they are the machine's own; elsewhere and behind a proxy only the operator knows them."""
    assert Settings.load(**flags).known_hosts == known


@pytest.mark.parametrize(
    ("variable", "value", "field", "expected"),
    [
        ("HOST", "0.0.0.0", "host", "0.0.0.0"),
        ("HOST", "::1", "host", "::1"),
        ("PORT", "9000", "port", 9000),
        ("DATA_DIR", "/srv/data", "storage_url", "sqlite:////srv/data/worldsize.sqlite3"),
        ("DATA_DIR", "/srv/data", "signing_secret_file", Path("/srv/data/secret")),
        ("SECRET_FILE", "/run/secrets/key", "signing_secret_file", Path("/run/secrets/key")),
        ("DATABASE_URL", "sqlite:////srv/x.db", "storage_url", "sqlite:////srv/x.db"),
        ("DATABASE_URL", "postgres://u:p%40w@db/ws", "storage_url", "postgresql+psycopg://u:p%40w@db/ws"),
        ("DATABASE_URL", "postgresql://u@db:5433/ws", "storage_url", "postgresql+psycopg://u@db:5433/ws"),
        ("DATABASE_URL", "postgresql+psycopg://u@/ws?host=h", "storage_url", "postgresql+psycopg://u@/ws?host=h"),
        ("CONTENT_DIRS", f"/tmp{os.pathsep}/usr", "course_dirs", (COURSE_DIR, Path("/tmp"), Path("/usr"))),
        ("MAX_WORLD_SIZE", "2", "max_world_size", 2),
        ("RUN_SECONDS", "7.5", "run_seconds", 7.5),
        ("RUN_QUOTA", "0", "run_quota", 0),
        ("KEEP_RUNS_DAYS", "1", "keep_runs_days", 1),
        ("ANSWER_QUOTA", "1", "answer_quota", 1),
        ("LEARNER_QUOTA", "1", "learner_quota", 1),
        ("LAUNCHER", "local", "launcher", "local"),
        ("RUNS", "off", "runs", False),
        ("HOSTS", "Course.example.org, [2001:db8::1]", "hosts", ("course.example.org", "2001:db8::1")),
        ("TRUSTED_PROXIES", "10.0.0.0/8, ::1", "trusted_proxies", (ip_network("10.0.0.0/8"), ip_network("::1"))),
        ("FRAME_ANCESTORS", "'self' https://lms.example.org:8443", "frame_ancestors", ("'self'", "https://lms.example.org:8443")),
    ],
)
def test_a_variable_is_read(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, field: str, expected: object
) -> None:
    monkeypatch.setenv(f"WORLDSIZE_{variable}", value)
    assert getattr(Settings.load(), field) == expected


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HOST", ""),
        ("HOST", "a b"),
        ("PORT", "http"),
        ("PORT", "0"),
        ("PORT", "65536"),
        ("CONTENT_DIRS", "/no/such/folder"),
        ("MAX_WORLD_SIZE", "9"),
        ("MAX_WORLD_SIZE", "0"),
        ("RUN_SECONDS", "nan"),
        ("RUN_SECONDS", "0"),
        ("RUN_QUOTA", "-1"),
        ("KEEP_RUNS_DAYS", "0"),
        ("ANSWER_QUOTA", "0"),
        ("LEARNER_QUOTA", "many"),
        ("LAUNCHER", "kubernetes"),
        ("LAUNCHER", "slurm"),
        ("RUNS", "sometimes"),
        ("HOSTS", "course.example.org:8000"),
        ("HOSTS", "*"),
        ("HOSTS", "http://course.example.org"),
        ("TRUSTED_PROXIES", "*"),
        ("TRUSTED_PROXIES", "0.0.0.0/0"),
        ("TRUSTED_PROXIES", "::/0"),
        ("FRAME_ANCESTORS", ""),
        ("FRAME_ANCESTORS", "'none' 'self'"),
        ("FRAME_ANCESTORS", "'self'; script-src *"),
        ("FRAME_ANCESTORS", "*"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(f"WORLDSIZE_{variable}", value)
    with pytest.raises(SettingsRefused) as refused:
        Settings.load()
    [fault] = refused.value.faults
    assert fault.variable == f"WORLDSIZE_{variable}"
    assert str(refused.value).startswith(f"WORLDSIZE_{variable}={value}: must be ")


@pytest.mark.parametrize(
    "url", ["mysql://u:hunter2@h/x", "sqlite://", "sqlite:///:memory:", "postgresql://u:hunter2@h", "hunter2"]
)
def test_a_database_url_that_cannot_be_used_is_refused_without_showing_its_password(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("WORLDSIZE_DATABASE_URL", url)
    with pytest.raises(SettingsRefused, match=r"^WORLDSIZE_DATABASE_URL=\.\.\.: must be") as refused:
        Settings.load()
    assert "hunter2" not in str(refused.value)


def test_all_faults_are_told_at_once_a_misspelt_variable_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLDSIZE_PORT", "http")
    monkeypatch.setenv("WORLDSIZE_DATABSE_URL", "postgresql://u:hunter2@h/x")
    monkeypatch.setenv("WORLDSIZE_COLOUR", "blue")
    with pytest.raises(SettingsRefused) as refused:
        Settings.load()
    colour, misspelt, port = str(refused.value).splitlines()
    assert "the settings are WORLDSIZE_HOST, WORLDSIZE_PORT" in colour
    assert misspelt == "WORLDSIZE_DATABSE_URL=...: there is no such setting; did you mean WORLDSIZE_DATABASE_URL?"
    assert port.startswith("WORLDSIZE_PORT=http")


def test_a_flag_overrides_the_environment_and_one_not_given_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLDSIZE_PORT", "9000")
    monkeypatch.setenv("WORLDSIZE_HOST", "::1")
    settings = Settings.load(port=9001, host=None)
    assert (settings.port, settings.host) == (9001, "::1")


def test_settings_cannot_be_changed() -> None:
    settings = Settings.load()
    with pytest.raises(ValidationError, match="frozen"):
        settings.port = 1


def test_the_password_of_the_database_is_not_in_what_is_printed() -> None:
    assert "hunter2" not in repr(Settings.load(database_url="postgresql://u:hunter2@h/x"))


def test_nothing_else_in_the_app_reads_the_environment() -> None:
    app = Path(__file__).parent.parent / "app"
    readers = [path.name for path in app.rglob("*.py") if re.search(r"os\.environ|getenv", path.read_text())]
    assert readers == ["settings.py"]


def test_reading_the_settings_needs_no_torch() -> None:
    code = "import sys; import app.settings, app.db, app.migrations, app.learners.store; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
