"""Runs a spec under torchrun and prints what it measured. Whole in itself: scripts and notebooks to take away are made of it.

To run it, torch and the kernels of World Size must be there: either work in the folder of a checkout,
or install them once with   pip install '.[lab]'   in that folder.
"""

from __future__ import annotations

import json
import shlex
import statistics
import subprocess
import sys
import tempfile
from typing import Any

Json = dict[str, Any]


def torchrun(spec: Json, log_folder: str) -> list[str]:
    """The command as a list of words: a process for each rank, a free port on this machine, the spec as JSON.

    torchrun makes a folder for its logs and never deletes it; so it gets one that will be.
    """
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--nproc-per-node", str(spec["P"])),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"),
        *("--log-dir", log_folder),
        *("-m", "kernels.train", "--spec", json.dumps(spec)),
    ]


def measure(spec: Json) -> Json:
    """Run it and return the report. Stops with the job's own words if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        job = subprocess.run(torchrun(spec, folder), capture_output=True, text=True)
    if job.returncode != 0:
        raise SystemExit(f"{job.stderr[-4000:]}\nThis command ended with exit code {job.returncode}:\n{shlex.join(job.args)}")
    report: Json = json.loads(job.stdout.strip().splitlines()[-1])
    return report


def show(report: Json, seen: list[Json]) -> None:
    """A few lines for each experiment: bytes by rank beside what the page predicted, and whether it showed the same payload."""
    for one, page in zip(report["experiments"], seen, strict=True):
        experiment = one["experiment"]
        values = {"P": report["P"], **{name: experiment[name] for name in ("L", "H", "T", "m")}, **experiment["options"]}
        print(f"{experiment['strategy']}: {', '.join(f'{name} = {value}' for name, value in values.items())}")
        print("  payload bytes by rank:", words(sent(one["payload_matrix"])))
        print(f"  predicted for {page['backend']}: ".ljust(24), words(page["predicted_bytes_by_rank"], page["predicted_bytes"]))
        print(f"  the formula:           {page['formula_bytes']} in all")
        print("  verdict:              ", verdict(sent(one["payload_matrix"]), page))
        print("  wire bytes by rank:   ", words(sent(one["wire_matrix"])))
        if page["matrix"] is not None:
            same = one["payload_matrix"] == page["matrix"]
            print("  the same payload, from each rank to each, as on the page" if same else "  not the payload of the page")


def sent(matrix: list[list[int]] | None) -> list[int] | None:
    """What each rank sent, whoever received it."""
    return None if matrix is None else [sum(row) for row in matrix]


def words(by_rank: list[int] | None, total: int | None = None) -> str:
    """What each rank sent, and the sum over all; the sum alone where nobody can say who sends it."""
    if by_rank is None:
        return "not counted here" if total is None else f"{total} in all"
    return f"{' '.join(map(str, by_rank))}; {sum(by_rank)} in all"


def verdict(measured: list[int] | None, page: Json) -> str:
    """Measured against predicted, to the byte: in all, and by rank where that is known."""
    if measured is None:
        return "none, for nothing was counted"
    expected = page["predicted_bytes_by_rank"]
    equal = sum(measured) == page["predicted_bytes"] if expected is None else measured == expected
    if not equal:
        return "differs from what was predicted"
    gap = page["predicted_bytes"] - page["formula_bytes"]
    apart = f", {abs(gap)} bytes {'over' if gap > 0 else 'under'} the formula"
    return f"as predicted, to the byte{apart if gap else ''}"


def show_times(report: Json, seen: list[Json]) -> None:
    """For a run that took times: each size beside the line through all, and the line's alpha and B, here and on the page."""
    sizes = [4 * one["experiment"]["options"]["elements"] for one in report["experiments"]]
    times = [first_decile(one["timeline"]) for one in report["experiments"]]
    messages = 2 * (report["P"] - 1)
    latency, slope = line_through(sizes, times)
    print(f"all-reduce on P = {report['P']} processes; of the calls of each size, one in ten was faster than the time given")
    for size, seconds in zip(sizes, times, strict=True):
        line = latency + slope * size
        print(f"  {size:>9,} bytes: {seconds * 1e6:9.1f} us measured, {line * 1e6:9.1f} us by the line, "
              f"{100 * (seconds - line) / seconds:+.0f} %")
    if latency <= 0 or slope <= 0:
        print("  no line with a positive alpha and B fits these times: repeat them on a quieter machine")
        return
    print(f"  here:        {constants(latency / messages, messages / (report['P'] * slope))}")
    for page in seen:
        if page["alpha_seconds"] is not None:
            print(f"  on the page: {constants(page['alpha_seconds'], page['bandwidth_bytes_per_second'])}")


def constants(alpha: float, B: float) -> str:
    """The two constants of a machine, in words."""
    return f"alpha = {alpha * 1e6:.1f} us a message, B = {B / 1e6:.0f} MB/s one way"


def first_decile(timeline: list[Json]) -> float:
    """Seconds of a call; each call lasts as long as on its slowest rank."""
    by_rank: dict[int, list[float]] = {}
    for interval in timeline:
        by_rank.setdefault(interval["rank"], []).append(interval["end_seconds"] - interval["start_seconds"])
    slowest = [max(call) for call in zip(*by_rank.values(), strict=True)]
    decile: float = statistics.quantiles(slowest, n=10)[0]
    return decile


def line_through(sizes: list[int], times: list[float]) -> tuple[float, float]:
    """Seconds at no bytes, and seconds a byte: least squares of the relative error."""
    a, b, d = (sum(size**power / time**2 for size, time in zip(sizes, times, strict=True)) for power in (0, 1, 2))
    right = sum(1 / time for time in times)
    right_size = sum(size / time for size, time in zip(sizes, times, strict=True))
    determinant = a * d - b * b
    return (d * right - b * right_size) / determinant, (a * right_size - b * right) / determinant
