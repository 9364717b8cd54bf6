"""From the start of navigation until a key pressed on a slider changes a number: the flagship beside a bare page, in one run.

The bare page is a slider, htmx and the same figure's fragments, with no style, no text and no font, from Starlette. Every load
has an empty cache. The two take turns, so that whatever else the machine does meanwhile slows both.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser

from app.assets import VENDOR
from tests.benchmarks.test_pages import LESSON, free_port, serving

pytestmark = [pytest.mark.benchmark, pytest.mark.browser, pytest.mark.timeout(600)]

LOADS = 15
MOST_GPUS = 64
BARE = """
import sys
from pathlib import Path
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

folder = Path(sys.argv[2])
fragments = {int(path.stem): path.read_text() for path in folder.glob("*.html")}
htmx = Path(sys.argv[3]).read_bytes()
whole = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Bare</title>'
    '<script src="/htmx.js" defer></script></head><body>'
    '<input type="range" id="volume-P-slider" name="P" min="1" max="64" value="4" hx-get="/fragment" hx-trigger="input" '
    'hx-target="#drawing" hx-sync="this:queue all"><div id="drawing">' + fragments[4] + '</div></body></html>')

async def page(request):
    return HTMLResponse(whole)

async def fragment(request):
    return HTMLResponse(fragments[int(request.query_params["P"])])

async def script(request):
    return Response(htmx, media_type="text/javascript")

routes = [Route("/", page), Route("/fragment", fragment), Route("/htmx.js", script)]
uvicorn.run(Starlette(routes=routes, middleware=[Middleware(GZipMiddleware)]), port=int(sys.argv[1]), log_config=None,
            access_log=False)
"""
# The slider has the focus from the first frame on. The clock is the page's own and starts with the navigation.
WATCH = """
const focus = () => {
  const slider = document.getElementById("volume-P-slider");
  if (slider) slider.focus(); else requestAnimationFrame(focus);
};
requestAnimationFrame(focus);
addEventListener("htmx:load", () => { window.htmxAt ??= performance.now(); }, true);
new MutationObserver(() => {
  const number = document.querySelector(".n")?.textContent;
  if (!number) return;
  window.firstNumber ??= number;
  if (number !== window.firstNumber) window.changedAt ??= performance.now();
}).observe(document, { childList: true, subtree: true, characterData: true });
"""
SEEN = """() => ({
  "first paint": performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0,
  "htmx ready": window.htmxAt, "number changed": window.changedAt,
})"""


def test_interactive_beside_a_bare_page(browser: Browser, tmp_path: Path) -> None:
    our_port, bare_port = free_port(), free_port()
    fragments, script = tmp_path / "fragments", tmp_path / "bare.py"
    fragments.mkdir()
    script.write_text(BARE)
    ours = [sys.executable, "-m", "app", "web", "--port", str(our_port), "--data-dir", str(tmp_path / "data")]
    beside = [sys.executable, str(script), str(bare_port), str(fragments), str(VENDOR / "htmx.min.js")]
    pages = {"bare page": f"http://127.0.0.1:{bare_port}/", "the lesson": f"http://127.0.0.1:{our_port}{LESSON}"}
    seen: dict[str, list[Mapping[str, float]]] = {name: [] for name in pages}
    with serving(ours, our_port, "/healthz"):
        for gpus in range(1, MOST_GPUS + 1):
            with urlopen(f"http://127.0.0.1:{our_port}/figures/volume?P={gpus}") as answer:
                (fragments / f"{gpus}.html").write_bytes(answer.read())
        with serving(beside, bare_port, "/"):
            for load in range(LOADS + 1):
                for name, address in pages.items():
                    times = interactive(browser, address)
                    if load:  # the first one of each warms the servers
                        seen[name].append(times)
    medians = {name: {key: statistics.median(one[key] for one in times) for key in times[0]} for name, times in seen.items()}
    for name, times in medians.items():
        print(f"{name}: " + ", ".join(f"{key} {milliseconds:.0f} ms" for key, milliseconds in times.items()))
    ratios = {key: medians["the lesson"][key] / medians["bare page"][key] for key in medians["bare page"]}
    print(f"the lesson / bare page, medians of {LOADS}: " + ", ".join(f"{key} {ratio:.2f}" for key, ratio in ratios.items()))


def interactive(browser: Browser, address: str) -> Mapping[str, float]:
    """Milliseconds from the start of navigation, with an empty cache; the key is pressed until the number has changed."""
    with browser.new_context() as context:
        page = context.new_page()
        page.add_init_script(WATCH)
        page.goto(address, wait_until="commit")
        while page.evaluate("() => window.changedAt === undefined"):
            page.keyboard.press("ArrowRight")
        times: Mapping[str, float] = page.evaluate(SEEN)
        return times
