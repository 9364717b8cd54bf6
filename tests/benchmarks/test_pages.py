"""What a page weighs, and what a figure's fragment costs beside a bare Starlette and Jinja2 fragment, in one run."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]

LESSON = "/lessons/split-three-ways"
REQUESTS = 1500
BARE = """
import sys, uvicorn
from jinja2 import Environment
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

template = Environment(autoescape=True).from_string(
    "<section>{% for row in rows %}<div class='row'><b>{{ row.name }}</b> <i>{{ row.value }}</i></div>{% endfor %}</section>")

def fragment(request):
    gpus = int(request.query_params.get("P", "4"))
    sizes = {"data": 32, "tensor": 16, "pipeline": 4}
    rows = [{"name": name, "value": 2 * (gpus - 1) * size / gpus} for name, size in sizes.items()]
    return HTMLResponse(template.render(rows=rows))

uvicorn.run(Starlette(routes=[Route("/", fragment)]), port=int(sys.argv[1]), log_config=None, access_log=False)
"""


class Server:
    """A process that answers on a port, and the CPU time it has used."""

    def __init__(self, port: int, pid: int) -> None:
        self.port, self.pid = port, pid

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serving(command: list[str], port: int, path: str) -> Iterator[Server]:
    """Started, and awaited until it answers."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _await_answer(port, path)
            yield Server(port, process.pid)
        finally:
            process.send_signal(signal.SIGTERM)


def _await_answer(port: int, path: str) -> None:
    give_up = time.monotonic() + 60
    while True:
        try:
            urlopen(f"http://127.0.0.1:{port}{path}").close()
            return
        except OSError:
            if time.monotonic() > give_up:
                raise


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def load(server: Server, paths: list[str]) -> tuple[list[float], float]:
    """Seconds of each request over one kept connection, and the server's CPU seconds for all of them."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    began_cpu, seconds = server.cpu_seconds(), []
    for path in paths:
        began = time.perf_counter()
        connection.request("GET", path, headers={"HX-Request": "true"})
        answer = connection.getresponse()
        answer.read()
        seconds.append(time.perf_counter() - began)
        assert answer.status == 200, path
    connection.close()
    return seconds, server.cpu_seconds() - began_cpu


def test_a_figure_fragment_beside_a_bare_one(tmp_path: Path) -> None:
    bare_script = tmp_path / "bare.py"
    bare_script.write_text(BARE)
    bare_port, our_port = free_port(), free_port()
    ours = [sys.executable, "-m", "app", "web", "--port", str(our_port), "--data-dir", str(tmp_path / "data")]
    odd = (3, 5, 7, 9)
    fresh = [f"/figures/volume?P={p}&H={h}&L={layers}" for p in range(1, 65) for h in odd for layers in odd]
    with (serving([sys.executable, str(bare_script), str(bare_port)], bare_port, "/") as bare,
          serving(ours, our_port, "/healthz") as our):
        bare_seconds, bare_cpu = load(bare, ["/"] * REQUESTS)
        cached_seconds, cached_cpu = load(our, ["/figures/volume?P=4"] * REQUESTS)
        fresh_seconds, fresh_cpu = load(our, fresh)
    _say("bare Starlette + Jinja2", bare_seconds, bare_cpu)
    _say("volume, cached", cached_seconds, cached_cpu)
    _say("volume, every value new", fresh_seconds, fresh_cpu)
    ratio = (sum(bare_seconds) / len(bare_seconds)) / (sum(cached_seconds) / len(cached_seconds))
    print(f"throughput of the cached fragment / bare fragment: {ratio:.2f} by time, "
          f"{(bare_cpu / len(bare_seconds)) / (cached_cpu / len(cached_seconds)):.2f} by the server's CPU time")


def _say(name: str, seconds: list[float], cpu: float) -> None:
    median, each = statistics.median(seconds) * 1000, cpu / len(seconds) * 1000
    print(f"{name}: p50 {median:.2f} ms, {each:.2f} ms of the server's CPU a request")


def test_what_the_lesson_weighs(tmp_path: Path) -> None:
    port = free_port()
    ours = [sys.executable, "-m", "app", "web", "--port", str(port), "--data-dir", str(tmp_path / "data")]
    with serving(ours, port, "/healthz") as server:
        page = _fetched(server, LESSON)
        addresses = sorted({address for address in _addresses(page) if address.startswith("/static/")})
        sizes = {address: len(_fetched(server, address, decoded=False)) for address in addresses}
        html = len(_fetched(server, LESSON, decoded=False))
        status = Path(f"/proc/{server.pid}/status").read_text().splitlines()
        memory = int(next(line for line in status if line.startswith("VmRSS")).split()[1])
    for address, size in sizes.items():
        print(f"{size / 1024:7.1f} KB {address}")
    print(f"{html / 1024:7.1f} KB the page itself; web process {memory / 1024:.0f} MB")


def _fetched(server: Server, path: str, decoded: bool = True) -> bytes:
    headers = {} if decoded else {"Accept-Encoding": "gzip"}
    with urlopen(Request(f"http://127.0.0.1:{server.port}{path}", headers=headers)) as answer:
        body: bytes = answer.read()
        return body


def _addresses(page: bytes) -> list[str]:
    parts = page.decode().replace("'", '"').split('"')
    return [part for part in parts if part.startswith("/static/")]


@pytest.mark.skipif(shutil.which("lighthouse") is None, reason="needs Lighthouse: npm install --global lighthouse@12")
def test_lighthouse_on_the_flagship(tmp_path: Path) -> None:
    port = free_port()
    ours = [sys.executable, "-m", "app", "web", "--port", str(port), "--data-dir", str(tmp_path / "data")]
    scores: dict[str, list[float]] = {}
    with serving(ours, port, "/healthz"):
        for run in range(5):
            report = tmp_path / f"{run}.json"
            subprocess.run([
                "lighthouse", f"http://127.0.0.1:{port}{LESSON}", "--quiet", "--output=json", f"--output-path={report}",
                "--only-categories=performance,accessibility,best-practices,seo",
                "--chrome-flags=--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
                "--disable-background-networking --disable-component-update --disable-sync",
            ], check=True, capture_output=True, env={**os.environ, "CHROME_PATH": shutil.which("chromium") or ""})
            for name, category in json.loads(report.read_text())["categories"].items():
                scores.setdefault(name, []).append(category["score"] * 100)
    for name, values in scores.items():
        print(f"{name}: median of five {statistics.median(values):.0f}, lowest {min(values):.0f}")
