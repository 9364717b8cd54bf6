"""What must be true of the image and of its containers; each check raises, or says in a few words what it saw."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

from tests.image.build import ROOT, megabytes
from tests.image.composition import flags, limits, services
from tests.image.containers import Browser, Container, once, started
from tests.image.engine import NOTHING, Engine, StepFailed

LESSON = "/lessons/split-three-ways"
LIMIT = "600"  # seconds of one run: it tests the image, not how fast this machine is
MEASURE = ("measure", "data_parallel", "-P", "4", "--json", "--run-seconds", LIMIT)
# 48 elements of 4 bytes sent by each of 4 GPUs; with 2 GPUs it is 32.
RUN, BYTES = {"strategy": "data_parallel", "P": 4}, [192] * 4
SMALL_RUN, SMALL_BYTES = {"strategy": "data_parallel", "P": 2}, [128] * 2
# Long enough to be killed in the midst of it.
STRATEGIES = ("data_parallel", "ddp", "tensor_parallel", "pipeline_gpipe")
LONG_RUN = {"P": 8, "experiments": [{"strategy": name} for name in STRATEGIES]}
HIDDEN = (".git", ".env", "tests", "docs", "var", "compose.yaml", "Dockerfile")
ORPHAN = """
import os, select, sys, time
ours, theirs = os.pipe()
if os.fork() == 0:
    orphan = os.fork()
    if orphan == 0:
        time.sleep(0.2)
        os._exit(0)
    os.write(theirs, str(orphan).encode())
    os._exit(0)
os.wait()
orphan = int(os.read(ours, 20))
give_up = time.monotonic() + SECONDS
while os.path.exists(f"/proc/{orphan}") and time.monotonic() < give_up:
    time.sleep(0.05)
print("stays" if os.path.exists(f"/proc/{orphan}") else "reaped")
"""
ZOMBIES = """
from pathlib import Path
print(sum(path.read_text().rpartition(")")[2].split()[0] == "Z" for path in Path("/proc").glob("[0-9]*/stat")))
"""
PEAK = """
from pathlib import Path
paths = map(Path, ("/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes"))
print(next(path.read_text() for path in paths if path.exists()).strip())
"""
RIGHTS = """
import json, os, resource, socket
from pathlib import Path

def writable(folder):
    try:
        with open(os.path.join(folder, ".probe"), "w"):
            os.unlink(os.path.join(folder, ".probe"))
    except OSError:
        return False
    return True

def first(*paths):  # control groups of version 2, or of version 1
    return int(next(Path(path).read_text() for path in paths if os.path.exists(path)))

status = dict(line.split(":\\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
folders = ["/", "/opt/worldsize", "/opt/venv", "/etc", "/run", "/var/tmp"]
print(json.dumps({
    "user": os.getuid(), "first": Path("/proc/1/cmdline").read_text().split("\\0")[0],
    "rights": status["CapEff"] + status["CapBnd"], "no_new": status["NoNewPrivs"],
    "root": [folder for folder in folders if writable(folder)],
    "data": writable("/data"), "tmp": writable("/tmp"), "secret": Path("/secret/key").exists(),
    "interfaces": sorted(name for _, name in socket.if_nameindex()),
    "processes": first("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"),
    "memory": first("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
}))
"""


def expect(true: bool, what: str, seen: object = "") -> None:
    if not true:
        raise StepFailed(f"{what}{f': {seen}' if seen != '' else ''}")


def on_host(port: int) -> tuple[str, ...]:
    """Instead of a published port, which would need a firewall: the host's network, on loopback only."""
    return ("--network", "host", "--env", "WORLDSIZE_HOST=127.0.0.1", "--env", f"WORLDSIZE_PORT={port}",
            "--env", f"WORLDSIZE_RUN_SECONDS={LIMIT}")


def image_is_lean(engine: Engine, torch: str) -> str:
    """Not root, an init first, nothing but the product, and nothing of the machine that built it."""
    image = f"worldsize:{torch}"
    settings = json.loads(engine.podman("image", "inspect", "--format", "{{json .Config}}", image))
    expect(settings["User"] == "10001:10001", "the image runs as", settings["User"])
    expect(settings["Entrypoint"][:2] == ["/usr/bin/tini", "--"], "the entry point is no init", settings["Entrypoint"])
    names = {word.partition("=")[0] for word in settings["Env"]}
    expected = {"PATH", "PYTHONUNBUFFERED", "WORLDSIZE_RUNS", "WORLDSIZE_HOST", "WORLDSIZE_DATA_DIR"}
    expect(names == expected, "unexpected variables in the image", names ^ expected)
    look = ("--rm", "--no-healthcheck", "--network", "none", *limits(), "--entrypoint", "ls")
    listed = set(engine.podman("run", *look, image, "-A", "/opt/worldsize").split())
    expect(not listed & set(HIDDEN), "these do not belong into the image", listed & set(HIDDEN))
    return f"{megabytes(engine, image)} MB unpacked"


def lesson_without_runs(browser: Browser, web: Container) -> str:
    ready = browser.wait_until_ready(web)
    expect(ready["runs"] is False, "runs are on without torch", ready)
    return lesson_is_read(browser, web)


def lesson_is_read(browser: Browser, web: Container) -> str:
    """With a figure, formulas, and the fonts and htmx that were fetched while building."""
    browser.wait_until_ready(web)
    page = browser.get(LESSON)
    for part in ("<h1", "<math", "<svg", "htmx.min.js"):
        expect(part in page, f"the lesson lacks {part}")
    expect("htmx" in browser.get("/static/vendor/htmx.min.js"), "htmx is not what is served as htmx")
    return f"{len(page) / 1000:.0f} kB"


def health_check(engine: Engine, web: Container, image: str) -> str:
    """It holds now, and it would not if the port were silent."""
    test = json.loads(engine.podman("image", "inspect", "--format", "{{json .Config.Healthcheck}}", image))["Test"][1:]
    web.execute(*test)
    engine.podman("exec", "--env", "WORLDSIZE_PORT=1", web.name, *test, allowed=(1,))
    return "holds, and fails where nobody answers"


def guarded(web: Container, worker: Container) -> str:
    """Root file system read-only, no rights, an init as process 1; the worker has no network and no secret."""
    for container in (web, worker):
        seen = json.loads(container.python(RIGHTS))
        service = services()[container.name]
        memory = int(service["mem_limit"].removesuffix("g")) * 2**30
        wanted = {"user": 10001, "first": "/usr/bin/tini", "rights": "0" * 32, "no_new": "1", "root": [], "data": True,
                  "tmp": True, "secret": container is web, "interfaces": ["lo"] if container is worker else seen["interfaces"],
                  "processes": service["pids_limit"], "memory": memory}
        expect(seen == wanted, f"{container.name} is not guarded as it should be", f"{seen}, not {wanted}")
    return "user, rights, file systems, network, secret, limits"


def orphans_are_reaped(worker: Container) -> str:
    """A process whose parent has died falls to process 1, which must not leave it a zombie."""
    seen = worker.python(ORPHAN.replace("SECONDS", "60"))
    expect(seen == "reaped", "an orphan", seen)
    return ""


def orphans_stay_without_init(engine: Engine, image: str) -> str:
    """Else the check above could not fail."""
    extra = ("--network", "none", "--entrypoint", "python3")
    with started(engine, "no-init", image, "-c", "import time; time.sleep(600)", extra=extra, service="worker") as container:
        seen = container.python(ORPHAN.replace("SECONDS", "3"))
    expect(seen == "stays", "without an init an orphan", seen)
    return ""


def is_measured(result: Any, by_rank: list[int]) -> str:
    """Bytes sent by each rank, on the wire, without the protocol's own."""
    measured = result["measured"]["payload_bytes_by_rank"]
    expect(result["verdict"] == "equal" and measured == by_rank, "measured", f"{measured}, {result['verdict']}")
    return f"{measured}"


def measured_alone(engine: Engine, image: str) -> str:
    """By the command, in a container without network whose host name does not resolve."""
    unknown = "import socket\ntry:\n    socket.gethostbyname(socket.gethostname())\nexcept OSError:\n    print('unknown')"
    seen = once(engine, image, "-c", unknown, entry="python3").strip()
    expect(seen == "unknown", "the host's name leads somewhere", seen)
    return is_measured(json.loads(once(engine, image, *MEASURE)), BYTES)


def run_through_worker(browser: Browser, worker: Container) -> str:
    run_id = str(browser.post_json("/api/runs", RUN)["id"])
    done = browser.wait_for_run(run_id, {"done"}, worker)
    is_measured(done["reports"][0], BYTES)
    return run_id


def run_is_taken_up(browser: Browser, worker: Container) -> str:
    """Killed without warning while the ranks are at it; the next start of the container finishes the run by itself."""
    pid = worker.pid
    run_id = str(browser.post_json("/api/runs", LONG_RUN)["id"])
    browser.wait_for_run(run_id, {"running"}, worker)
    worker.kill(pid)
    state = browser.get_json(f"/api/runs/{run_id}")["state"]
    expect(state in {"running", "queued"}, "the run had ended before its worker was killed", state)
    began = time.monotonic()
    worker.start_again()
    done = browser.wait_for_run(run_id, {"done"}, worker)
    expect(all(report["verdict"] == "equal" for report in done["reports"]), "the run was taken up, and not equal", done)
    seconds = time.monotonic() - began
    zombies = worker.python(ZOMBIES)
    expect(zombies == "0", "zombies after the run", zombies)
    peak = int(worker.python(PEAK)) / 2**20
    return f"done {seconds:.1f} s after the start; the worker's peak was {peak:.0f} MiB"


def answer(browser: Browser) -> Any:
    """Given as a browser would; returns what is then kept."""
    browser.submit(f"{LESSON}/checkpoints/eight-gpus", answer="56")
    kept = export(browser)
    expect([attempt["question"] for attempt in kept["attempts"]] == ["eight-gpus"], "the answer was not kept", kept)
    return kept


def export(browser: Browser) -> dict[str, Any]:
    """All that is kept under the browser's cookie."""
    exported: dict[str, Any] = browser.get_json("/me/export")
    del exported["exported_at"]
    return exported


def all_is_kept(browser: Browser, web: Container, before: Any, run_id: str) -> str:
    browser.wait_until_ready(web)
    now = export(browser)
    expect(now == before, "the learner's work has changed", f"{now}, not {before}")
    is_measured(browser.get_json(f"/api/runs/{run_id}")["reports"][0], BYTES)
    return ""


def backup_words() -> dict[str, list[str]]:
    """What the deployment page tells tar, by "-cz" and "-xz"."""
    told = re.findall(r"docker compose run --rm -T --no-deps --entrypoint tar web (.+) [<>] worldsize-backup\.tar\.gz",
                      (ROOT / "docs" / "deployment.md").read_text())
    return {words.split()[2]: words.split() for words in told}


def back_up(engine: Engine, image: str, file: Path) -> str:
    _tar(engine, image, backup_words()["-cz"], target=file)
    return f"{file.stat().st_size / 1000:.0f} kB"


def restore(engine: Engine, image: str, file: Path) -> str:
    """Into volumes of which nothing is left."""
    engine.podman("volume", "rm", "data", "secret")
    _tar(engine, image, backup_words()["-xz"], source=file)
    return ""


def _tar(engine: Engine, image: str, words: list[str], source: Path = NOTHING, target: Path | None = None) -> None:
    """As `docker compose run` calls it: as the service's user, with its volumes and its guards."""
    guarded = (*flags(services()["web"]), *limits(), "--network", "none")
    engine.podman("run", "--rm", "--interactive", "--no-healthcheck", *guarded, "--entrypoint", "tar", image, *words,
                  source=source, target=target)


def both_in_one(browser: Browser, both: Container) -> str:
    """`docker run` without a command is web and worker together."""
    browser.wait_until_ready(both)
    run_id = str(browser.post_json("/api/runs", SMALL_RUN)["id"])
    return is_measured(browser.wait_for_run(run_id, {"done"}, both)["reports"][0], SMALL_BYTES)
