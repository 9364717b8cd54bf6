"""From the click to the measured bytes on the page, on a warm host, by phase; beside the same run from a cold torchrun.

Also what the processes of an idle server hold in memory.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from playwright.sync_api import Page, expect

from app.runs import take_away
from kernels.spec import RunSpec
from tests.benchmarks.serving import lesson_of_one_strategy, served
from tests.benchmarks.test_launch import COLD_RUNS, ONE, THREE

pytestmark = [pytest.mark.benchmark, pytest.mark.torchrun, pytest.mark.browser, pytest.mark.timeout(900)]

RUNS = 20
PLACE = "#run-three-cuts"
PHASES = ("queued", "launching", "warming_up", "measuring")
RUN_ID = re.compile(r"/runs/([A-Za-z0-9_-]{22})")
# The page's own clock, from the press of "Run again" until the bars of the new run are in the page.
PRESS_AND_WAIT = """() => new Promise(resolve => {
  const bars = () => document.querySelector("#run-three-cuts .own.fresh .ranks .got");
  const earlier = bars();
  const began = performance.now();
  new MutationObserver((changes, watching) => {
    if (!bars() || bars() === earlier) return;
    watching.disconnect();
    requestAnimationFrame(() => resolve(performance.now() - began));
  }).observe(document.body, {childList: true, subtree: true});
  document.querySelector("#run-three-cuts-again").click();
})"""


def test_click_to_measured_bytes(page: Page, tmp_path: Path) -> None:
    lessons = lesson_of_one_strategy(tmp_path)
    with served(tmp_path, content_dirs=str(lessons), run_quota="1000") as (address, server):
        one = clicks(page, address, "one-strategy")
        three = clicks(page, address, "split-three-ways")
        print_memory(server)
    cold_one = [cold_seconds(ONE) for _ in range(COLD_RUNS)]
    cold_three = [cold_seconds(THREE) for _ in range(COLD_RUNS)]
    for name, warm, cold in (("one strategy", one, cold_one), ("three strategies", three, cold_three)):
        tell(name, warm)
        ratio = statistics.median(cold) / statistics.median(seen["page"] for seen in warm)
        print(f"{name}, cold torchrun: p50 {statistics.median(cold):.2f} s, {len(cold)} runs; cold / click {ratio:.1f}")


def cold_seconds(spec: RunSpec) -> float:
    """The command that a run's page shows, from a shell: torch is imported by the agent and by each rank."""
    command = [sys.executable, "-m", "torch.distributed.run", *shlex.split(take_away.command(spec))[1:]]
    began = time.monotonic()
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    seconds = time.monotonic() - began
    assert json.loads(done.stdout.strip().splitlines()[-1])["P"] == spec.P
    return seconds


def clicks(page: Page, address: str, slug: str) -> list[Mapping[str, float]]:
    """RUNS runs after a first one, which warms the host: seconds on the page, and by phase as the run tells them."""
    page.goto(f"{address}/lessons/{slug}")
    page.locator(PLACE).get_by_role("button", name="Run it for real").click()
    expect(page.locator(f"{PLACE} .own.fresh")).to_be_visible(timeout=60_000)
    return [one_click(page, address) for _ in range(RUNS)]


def one_click(page: Page, address: str) -> Mapping[str, float]:
    seconds = page.evaluate(PRESS_AND_WAIT) / 1000
    link = page.locator(PLACE).get_by_role("link", name="Permalink").get_attribute("href") or ""
    found = RUN_ID.search(link)
    assert found is not None
    run: dict[str, Any] = httpx.get(f"{address}/api/runs/{found[1]}").json()
    assert [report["verdict"] for report in run["reports"]] == ["equal"] * len(run["reports"])
    return {"page": seconds, **run["timings"]}


def tell(name: str, seen: list[Mapping[str, float]]) -> None:
    page = [one["page"] for one in seen]
    split = {phase: statistics.median(one[phase] for one in seen) for phase in PHASES}
    rest = statistics.median(one["page"] - sum(one[phase] for phase in PHASES) for one in seen)
    parts = {**split, "told to the page": rest}
    words = ", ".join(f"{phase.replace('_', ' ')} {seconds:.2f}" for phase, seconds in parts.items())
    print(f"{name}, click to bytes: p50 {statistics.median(page):.2f} s, slowest {max(page):.2f} s, {len(page)} runs")
    print(f"    p50 of each part: {words}")


def print_memory(server: subprocess.Popen[bytes]) -> None:
    """Resident and proportional megabytes: forked processes share most of what they hold."""
    for process in psutil.Process(server.pid).children(recursive=True):
        words = process.cmdline()
        memory = process.memory_full_info()
        print(f"idle, {' '.join(words[1:4])}: {memory.rss / 1e6:.0f} MB resident, {memory.pss / 1e6:.0f} MB proportional")
