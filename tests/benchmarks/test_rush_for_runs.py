"""A class presses the button at once: 100 learners, 10 settings, while figures are drawn for whoever plays on."""

from __future__ import annotations

import asyncio
import html
import re
import statistics
import time
from itertools import count, cycle
from pathlib import Path

import httpx
import pytest

from tests.benchmarks.serving import served

pytestmark = [pytest.mark.benchmark, pytest.mark.torchrun, pytest.mark.timeout(600)]

LEARNERS = 100
SETTINGS = [(P, T) for P in (2, 3, 4, 5, 8) for T in (1, 2)]
EXPERIMENT = "split-three-ways/three-cuts"
HTMX = {"HX-Request": "true"}
POLL = re.compile(r'hx-get="(/runs/([A-Za-z0-9_-]{22})/status[^"]*)" hx-trigger="load delay:(\d+)ms')
RUN = re.compile(r"/runs/([A-Za-z0-9_-]{22})/script")
FIGURE_PAUSE_SECONDS = 0.02
LIMITS = httpx.Limits(max_connections=None)


def test_a_hundred_learners_press_at_once(tmp_path: Path) -> None:
    with served(tmp_path) as (address, _):
        asyncio.run(rush(address))


async def rush(address: str) -> None:
    async with httpx.AsyncClient(base_url=address, timeout=120, limits=LIMITS) as other:
        done = asyncio.Event()
        quiet = await figure_seconds(other, done, most=100)
        playing = asyncio.create_task(figure_seconds(other, done))
        began = time.monotonic()
        outcomes = await asyncio.gather(*(learner(address, *setting) for _, setting in zip(range(LEARNERS), cycle(SETTINGS))))
        took = time.monotonic() - began
        done.set()
        busy = await playing
    runs = {run for run, _, _ in outcomes}
    waits = sorted(seconds for _, seconds, _ in outcomes)
    print(f"{LEARNERS} learners, {len(SETTINGS)} settings: {len(outcomes)} results from {len(runs)} runs in {took:.1f} s; "
          f"press to result p50 {statistics.median(waits):.1f} s, slowest {waits[-1]:.1f} s; "
          f"{sum(polls for _, _, polls in outcomes)} polls")
    for name, seconds in (("before", quiet), ("meanwhile", busy)):
        ordered = sorted(seconds)
        p99 = ordered[int(0.99 * (len(ordered) - 1))]
        middle = statistics.median(ordered)
        print(f"figure fragments {name}: p50 {1000 * middle:.1f} ms, p99 {1000 * p99:.1f} ms, {len(ordered)} of them")
    assert len(runs) == len(SETTINGS), "identical runs are shared"


async def learner(address: str, P: int, T: int) -> tuple[str, float, int]:
    """Presses, polls as the page would, and reads the result: the run, how long it took, how many polls."""
    async with httpx.AsyncClient(base_url=address, timeout=120) as client:
        began = time.monotonic()
        form = {"experiment": EXPERIMENT, "volume.P": str(P), "volume.T": str(T)}
        answer = await client.post("/runs", data=form, headers=HTMX)
        for polls in count():
            assert answer.status_code == 200, answer.text
            found = POLL.search(answer.text)
            if found is None:
                shown = RUN.search(answer.text)
                assert shown is not None, answer.text
                assert "to the byte" in answer.text
                return shown[1], time.monotonic() - began, polls
            await asyncio.sleep(int(found[3]) / 1000)
            answer = await client.get(html.unescape(found[1]), headers=HTMX)
    raise AssertionError("count() has no end")


async def figure_seconds(client: httpx.AsyncClient, done: asyncio.Event, most: int | None = None) -> list[float]:
    """How long the server takes for a figure, one after another with a pause, at ever new values."""
    seconds: list[float] = []
    for turn in count():
        if done.is_set() or turn == most:
            return seconds
        values = {"P": turn % 64 + 1, "L": turn // 64 % 16 + 1, "T": turn // 1024 % 16 + 1}
        began = time.monotonic()
        answer = await client.get("/figures/volume", params=values)
        seconds.append(time.monotonic() - began)
        assert answer.status_code == 200
        await asyncio.sleep(FIGURE_PAUSE_SECONDS)
    return seconds
