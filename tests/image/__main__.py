"""`python -m tests.image`: every step with its time. The first that fails ends it, with what was said and exit status 1."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from tests.image import build, checks
from tests.image.containers import Browser, started
from tests.image.engine import Engine, StepFailed, require_tools
from tests.ports import free_port


def step(name: str, job: Callable[[], Any]) -> Any:
    """Does it, and prints a line with the time it took and what it says about itself."""
    print(f"{name:<58}", end="", flush=True)
    began = time.monotonic()
    result = job()
    print(f"{time.monotonic() - began:7.1f} s   {result if isinstance(result, str) else ''}", flush=True)
    return result


def main() -> None:
    began = time.monotonic()
    step("tools", require_tools)
    engine = Engine.open()
    build.clean(engine)
    try:
        step("base image", lambda: build.make_base(engine))
        for torch in ("none", "cpu"):
            step(f"build with TORCH={torch}", partial(build.build, engine, torch))
            step("  what the image holds, and as whom it runs", partial(checks.image_is_lean, engine, torch))
        without_torch(engine)
        with_torch(engine)
        print(f"{'all of it':<58}{time.monotonic() - began:7.1f} s")
    finally:
        build.clean(engine)


def without_torch(engine: Engine) -> None:
    """The image for reading only."""
    port = free_port()
    with started(engine, "web", "worldsize:none", "web", extra=checks.on_host(port)) as web:
        step("TORCH=none: the lesson is read, runs are off", lambda: checks.lesson_without_runs(Browser(port), web))


def with_torch(engine: Engine) -> None:
    """As `docker compose up` starts it, from the first page to the restart."""
    image = "worldsize:cpu"
    step("measured where the host's name leads nowhere", lambda: checks.measured_alone(engine, image))
    port = free_port()
    browser = Browser(port)
    with ExitStack() as stack:
        web = stack.enter_context(started(engine, "web", image, "web", extra=checks.on_host(port)))
        worker = stack.enter_context(started(engine, "worker", image, "worker"))
        step("web: the lesson is read over HTTP", lambda: checks.lesson_is_read(browser, web))
        step("web: the image's own health check", lambda: checks.health_check(engine, web, image))
        step("web and worker: guarded as compose.yaml says", lambda: checks.guarded(web, worker))
        step("worker: orphans are reaped", lambda: checks.orphans_are_reaped(worker))
        step("  and are not where no init is process 1", lambda: checks.orphans_stay_without_init(engine, image))
        run_id = step("a run through the worker: 192 bytes per GPU", lambda: checks.run_through_worker(browser, worker))
        step("worker killed in mid-run, started again: taken up", lambda: checks.run_is_taken_up(browser, worker))
        before = step("an answer is given", lambda: checks.answer(browser))
        step("worker stops when asked", lambda: f"{worker.stop():.1f} s to stop")
        step("web stops when asked", lambda: f"{web.stop():.1f} s to stop")
    with started(engine, "web", image, "web", extra=checks.on_host(port)) as web:
        step("new web container, same volumes: all is kept", lambda: checks.all_is_kept(browser, web, before, run_id))
    backup = engine.folder / "worldsize-backup.tar.gz"
    step("both volumes are backed up, as the page says", lambda: checks.back_up(engine, image, backup))
    step("  and restored where nothing is left of them", lambda: checks.restore(engine, image, backup))
    backup.unlink()
    with started(engine, "web", image, "web", extra=checks.on_host(port)) as web:
        step("  the old cookie finds all", lambda: checks.all_is_kept(browser, web, before, run_id))
    with started(engine, "both", image, extra=checks.on_host(port), service="worker") as both:
        step("one container without a command: a run", lambda: checks.both_in_one(Browser(port), both))
        step("  stops when asked", lambda: f"{both.stop():.1f} s to stop")


if __name__ == "__main__":
    try:
        main()
    except (StepFailed, AssertionError) as failed:
        print(f"failed\n{failed}", file=sys.stderr)
        sys.exit(1)
