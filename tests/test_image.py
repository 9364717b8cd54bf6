"""What the Dockerfile and compose.yaml promise, read without building: the guards of every container, and what is let in."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from textwrap import dedent

import pytest
import yaml

from app.settings import PREFIX, Settings
from tests.image.build import ROOT, has_torch_wheel
from tests.image.checks import backup_words
from tests.image.composition import flags, services

SERVICES = services()
REFUSALS = {
    "caddy": ["@inside path /readyz /metrics", "respond @inside 404"],
    "nginx": ["location = /readyz { return 404; }", "location = /metrics { return 404; }"],
}
BOUNDS = {
    "caddy": ["read_header 10s", "read_body 30s"],
    "nginx": ["client_header_timeout 10s;", "client_body_timeout 30s;"],
}
DEPLOYMENT = (ROOT / "docs" / "deployment.md").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()


@pytest.mark.parametrize("name", SERVICES)
def test_every_container_is_guarded(name):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert [path.partition(":")[0] for path in service["tmpfs"]] == ["/tmp"]
    assert service["mem_limit"]
    assert service["pids_limit"] <= 1024
    assert service["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", SERVICES)
def test_every_key_of_a_service_is_tested_or_known_not_to_be(name):
    assert "--read-only" in flags(SERVICES[name])


def test_a_key_that_nobody_has_translated_is_an_error():
    with pytest.raises(KeyError, match="privileged"):
        flags({"privileged": True})


def test_pages_are_published_on_loopback_alone_until_somebody_says_otherwise():
    assert SERVICES["web"]["ports"] == ["127.0.0.1:8000:8000"]
    assert not any("ports" in SERVICES[name] for name in SERVICES if name != "web")


@pytest.mark.parametrize("name", ["worker", "worker-gpu"])
def test_a_worker_has_neither_network_nor_secret(name):
    assert SERVICES[name]["network_mode"] == "none"
    assert "networks" not in SERVICES[name]
    assert SERVICES[name]["volumes"] == ["data:/data"]


@pytest.mark.parametrize("torch", ["cpu", "cuda", "none"])
def test_one_service_builds_the_image_and_no_registry_is_asked_for_the_others(torch):
    services_now = services(TORCH=torch)
    assert [name for name in services_now if "build" in services_now[name]] == ["web"]
    assert services_now["web"]["image"] == services_now["worker"]["image"] == f"worldsize:{torch}"
    assert services_now["web"]["build"]["args"] == {"TORCH": torch}
    assert {services_now[name].get("pull_policy") for name in services_now if name != "web"} == {"never"}


def test_gpus_and_shared_memory_come_with_the_profile_and_only_there():
    gpu = SERVICES["worker-gpu"]
    assert gpu["profiles"] == ["gpu"]
    [device] = gpu["deploy"]["resources"]["reservations"]["devices"]
    assert device == {"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}
    assert gpu["shm_size"] == "2g"
    assert gpu["image"] == "worldsize:cuda"
    assert not any("profiles" in SERVICES[name] for name in ("web", "worker"))


@pytest.mark.parametrize("name", SERVICES)
def test_every_setting_passed_on_exists(name):
    passed = {key for key in SERVICES[name]["environment"] if key.startswith(PREFIX)}
    assert passed <= {PREFIX + field.upper() for field in Settings.model_fields}


def test_every_setting_is_passed_on_unless_it_goes_with_the_image():
    passed = set(SERVICES["web"]["environment"]) | set(SERVICES["worker"]["environment"])
    settled = {"HOST", "PORT", "DATA_DIR", "RUNS", "LAUNCHER"}
    assert {field.upper() for field in Settings.model_fields} - settled == {name.removeprefix(PREFIX) for name in passed}


def test_a_container_without_torch_has_no_worker_that_starts_for_ever():
    [row] = [line for line in DEPLOYMENT.splitlines() if line.startswith("| no torch wanted")]
    assert "CPU_WORKERS=0" in row
    assert services(CPU_WORKERS="0")["worker"]["deploy"]["replicas"] == "0"


def test_settings_accept_the_defaults_of_compose(monkeypatch):
    for key, value in SERVICES["web"]["environment"].items():
        monkeypatch.setenv(key, str(value or ""))
    settings = Settings.load()
    assert settings.trusted_proxies == ()
    assert settings.frame_ancestors == ("'none'",)


def test_the_build_sees_what_the_image_holds_and_nothing_else():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    copied = {source.partition("/")[0] for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
              for source in line.split()[:-1]}
    assert let_in == copied


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (302, 1)])
def test_the_health_check_asks_the_web_process_itself_and_no_proxy(status, code):
    found = re.search(r"HEALTHCHECK .*\n  CMD (\[.*\])", DOCKERFILE)
    assert found is not None
    command = [sys.executable, *json.loads(found[1])[1:]]
    with answering(status) as (port, asked):
        surroundings = {"WORLDSIZE_PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
        assert subprocess.run(command, env=surroundings, check=False).returncode == code
    assert asked == ["/readyz"]


@contextmanager
def answering(status):
    """A server that answers everything with this status: its port, and what it was asked for."""
    asked = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Answer) as server, ThreadPoolExecutor(1) as pool:
        serving = pool.submit(server.serve_forever)
        try:
            yield server.server_port, asked
        finally:
            server.shutdown()
            serving.result()


@pytest.mark.parametrize("language", ["caddy", "nginx"])
def test_a_proxy_keeps_what_is_for_operators_to_itself(language):
    [recipe] = re.findall(rf"```{language}\n(.*?)```", DEPLOYMENT, re.DOTALL)
    assert [line for line in REFUSALS[language] if line not in recipe] == []


@pytest.mark.parametrize("language", ["caddy", "nginx"])
def test_a_proxy_bounds_the_time_in_which_a_request_arrives(language):
    [recipe] = re.findall(rf"```{language}\n(.*?)```", DEPLOYMENT, re.DOTALL)
    assert [line for line in BOUNDS[language] if line not in recipe] == []


def test_the_backup_that_is_told_holds_every_volume():
    told = backup_words()
    mounted = {volume.partition(":")[2].lstrip("/") for volume in SERVICES["web"]["volumes"]}
    assert told == {"-cz": ["-C", "/", "-cz", *sorted(mounted)], "-xz": ["-C", "/", "-xz"]}


def overrides():
    """Every compose.override.yaml that the deployment page shows."""
    shown = re.findall(r"    # compose\.override\.yaml\n((?:    .*\n)+)", DEPLOYMENT)
    return [yaml.safe_load(dedent(text))["services"] for text in shown]


def merged(service, override):
    """As compose does it: lists grow, mappings are merged, a single value takes the place of the one before."""
    grown = dict(service)
    for key, value in override.items():
        before = service.get(key)
        both = {**before, **value} if isinstance(value, dict) and before else value
        grown[key] = before + value if isinstance(value, list) and before else both
    return grown


@pytest.mark.parametrize("override", overrides())
def test_what_the_page_says_to_override_fits_the_services(override):
    assert override
    for name, keys in override.items():
        service = merged(SERVICES[name], keys)
        assert not {"networks", "network_mode"} <= set(service)  # compose: "mutually exclusive"
        assert set(SERVICES[name]["volumes"]) <= set(service["volumes"])


def test_both_services_reach_a_postgresql_as_the_page_says():
    [override] = [one for one in overrides() if "worker" in one]
    for name in ("web", "worker"):
        service = merged(SERVICES[name], override[name])
        assert service["environment"]["PGPASSFILE"] in service["volumes"][-1]
        assert service.get("network_mode") != "none"


def test_wheels_on_disk_spare_the_index_of_torch_builds(tmp_path):
    assert not has_torch_wheel("")
    assert not has_torch_wheel(f"https://example.org/wheels {tmp_path}")
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl").touch()
    assert has_torch_wheel(f"https://example.org/wheels {tmp_path}")
