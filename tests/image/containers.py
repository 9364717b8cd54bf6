"""Containers of the services, and what a browser and an operator do with them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookiejar import CookieJar
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

from tests.image import composition
from tests.image.engine import Engine, StepFailed

# No network but loopback, and a host name that leads nowhere: where rendezvous by name would hang for minutes.
ALONE = ("--network", "none", "--no-hosts", "--hostname", "nowhere")
START_SECONDS = 240
ASK_AGAIN_SECONDS = 0.1


@dataclass(frozen=True)
class Container:
    """One container by its name."""

    engine: Engine
    name: str

    def execute(self, *command: str, allowed: tuple[int, ...] = (0,)) -> str:
        try:
            return self.engine.podman("exec", self.name, *command, allowed=allowed)
        except StepFailed as failed:
            raise StepFailed(f"{failed}\nThe last lines of {self.name}:\n{self.logs()}") from failed

    def python(self, script: str) -> str:
        return self.execute("python3", "-c", script).strip()

    def logs(self) -> str:
        return self.engine.podman("logs", "--tail", "40", self.name)

    @property
    def pid(self) -> int:
        """Of its first process, as this machine counts."""
        return int(self.engine.podman("inspect", "--format", "{{.State.Pid}}", self.name))

    def kill(self, pid: int) -> None:
        """As a power cut does it: no warning, and nothing of it is left when this returns.

        With its first process all others die. Its pid was asked for before: by the time podman has started, what is to be
        hit may be over.
        """
        os.kill(pid, signal.SIGKILL)
        self.engine.podman("wait", self.name)

    def start_again(self) -> None:
        self.engine.podman("start", self.name)

    def stop(self) -> float:
        """As `docker stop`; the seconds it took. Raises StepFailed if it had to be killed."""
        began = time.monotonic()
        self.engine.podman("stop", "--time", "60", self.name)
        seconds = time.monotonic() - began
        code = self.engine.podman("inspect", "--format", "{{.State.ExitCode}}", self.name).strip()
        if code not in ("0", "143"):
            raise StepFailed(f"{self.name} ended with exit code {code} when it was asked to stop\n{self.logs()}")
        return seconds


@contextmanager
def started(engine: Engine, name: str, image: str, *command: str, extra: tuple[str, ...] = ALONE,
            service: str | None = None) -> Iterator[Container]:
    """A container of the service of that name, removed at the end whatever happens."""
    guarded = composition.flags(composition.services()[service or name])
    engine.podman("run", "--detach", "--no-healthcheck", "--name", name, *guarded, *composition.limits(), *extra,
                  image, *command)
    try:
        yield Container(engine, name)
    finally:
        engine.podman("rm", "--force", "--time", "0", name)


def once(engine: Engine, image: str, *command: str, entry: str | None = None) -> str:
    """What a command prints in a container as guarded as the worker's; `entry` replaces the image's entry point."""
    guarded = composition.flags(composition.services()["worker"])
    instead = ("--entrypoint", entry) if entry else ()
    return engine.podman("run", "--rm", "--no-healthcheck", *guarded, *composition.limits(), *ALONE, *instead, image, *command)


class Browser:
    """Keeps its cookies, and asks over HTTP."""

    def __init__(self, port: int) -> None:
        self._origin = f"http://127.0.0.1:{port}"
        self._opener = build_opener(HTTPCookieProcessor(CookieJar()))

    def get(self, path: str) -> str:
        with self._opener.open(self._origin + path, timeout=120) as answer:
            return str(answer.read().decode())

    def get_json(self, path: str) -> Any:
        return json.loads(self.get(path))

    def submit(self, path: str, **fields: str) -> str:
        with self._opener.open(self._origin + path, data=urlencode(fields).encode(), timeout=120) as answer:
            return str(answer.read().decode())

    def post_json(self, path: str, body: Any) -> Any:
        request = Request(self._origin + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with self._opener.open(request, timeout=120) as answer:
            return json.load(answer)

    def wait_until_ready(self, web: Container) -> dict[str, Any]:
        """The answer of /readyz, as soon as there is one."""
        give_up = time.monotonic() + START_SECONDS
        while True:
            try:
                ready: dict[str, Any] = self.get_json("/readyz")
            except (URLError, ConnectionError) as refused:
                if isinstance(refused, HTTPError) or time.monotonic() > give_up:
                    raise StepFailed(f"the web process does not get ready: {refused}\n{web.logs()}") from refused
                time.sleep(ASK_AGAIN_SECONDS)
            else:
                return ready

    def wait_for_run(self, run_id: str, states: set[str], worker: Container, seconds: float = 600) -> dict[str, Any]:
        """The run once it is in one of these states."""
        give_up = time.monotonic() + seconds
        while (run := self.get_json(f"/api/runs/{run_id}"))["state"] not in states:
            if time.monotonic() > give_up or run["state"] in {"failed", "timed_out", "cancelled", "done"}:
                raise StepFailed(f"the run should be {' or '.join(sorted(states))}:\n{json.dumps(run)[:2000]}\n{worker.logs()}")
            time.sleep(ASK_AGAIN_SECONDS)
        return dict(run)
