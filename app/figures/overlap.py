"""The figure *overlap*: the event log of a real run, drawn: which all-reduces were in flight while backward went on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from app.figures import gantt, svg
from app.figures.inputs import Choice, Inputs, Option
from app.figures.numbers import counted
from app.figures.volume_words import Finding

RECORDED = Path(__file__).with_name("recorded") / "overlap.json"
RUNS = ("buckets", "one", "by_hand")  # in the order in which they were recorded
FIELDS = (
    Choice("run", "Run", (Option("buckets", "DDP, four buckets"), Option("one", "DDP, one bucket"),
                          Option("by_hand", "by hand, after backward"))),
    Choice("rank", "Log of", (Option("0", "GPU 0"), Option("1", "GPU 1"))),
)
MILLISECONDS = 1000.0
Event = Mapping[str, Any]


@dataclass(frozen=True)
class OverlapView:
    spans: tuple[gantt.Span, ...]  # milliseconds since this GPU's forward pass began
    wide: gantt.Chart
    narrow: gantt.Chart
    finding: Finding
    recorded: str
    title: str
    status: str


def compute(inputs: Inputs) -> OverlapView:
    """The log of one GPU in one run. Nothing here is computed from a formula."""
    run, rank = inputs.choice("run"), int(inputs.choice("rank"))
    report = _reports()[RUNS.index(run)]
    spans = _spans(_events(report, rank))
    sent = [span for span in spans if span.kind == "sent"]
    lanes = ("compute", *(f"all-reduce {number}" for number in range(1, len(sent) + 1)))
    last = max(span.end for span in spans)
    ticks = svg.nice_ticks(last)
    finding = _finding(rank, sent, _backward(spans))
    title = f"Event log of GPU {rank}: forward, backward layer by layer, {counted(len(sent), 'all-reduce')}, optimizer step."
    wide, narrow = (gantt.chart(spans, lanes, last, layout, ticks) for layout in (gantt.WIDE, gantt.NARROW))
    return OverlapView(spans, wide, narrow, finding, _sentence(report), title, f"{title} {finding.text}")


@lru_cache(maxsize=1)
def _reports() -> tuple[Mapping[str, Any], ...]:
    return tuple(json.loads(RECORDED.read_text(encoding="utf-8")))


def _events(report: Mapping[str, Any], rank: int) -> list[Event]:
    """What one rank logged, in order; the whole of backward left out where its layers are logged."""
    own = sorted((event for event in report["measured"]["timeline"] if event["rank"] == rank),
                 key=lambda event: (event["start_seconds"], event["end_seconds"]))
    by_layer = any(event["name"].startswith("backward of ") for event in own)
    return [event for event in own if not (by_layer and event["name"] == "backward")]


def _spans(events: Sequence[Event]) -> tuple[gantt.Span, ...]:
    origin = min(event["start_seconds"] for event in events)
    made: list[gantt.Span] = []
    sent = 0
    for event in events:
        start, end = (MILLISECONDS * (event[key] - origin) for key in ("start_seconds", "end_seconds"))
        kind = event["name"].split()[0]
        if kind == "all_reduce":
            sent += 1
            made.append(gantt.Span(sent, start, end, "sent", f"all-reduce {sent}"))
        else:
            made.append(gantt.Span(0, start, end, {"optimizer": "update"}.get(kind, kind), _said(event["name"])))
    return tuple(made)


def _said(name: str) -> str:
    return "optimizer step" if name == "optimizer" else name


def _backward(spans: Sequence[gantt.Span]) -> list[gantt.Span]:
    return [span for span in spans if span.kind == "backward"]


def _times(spans: Sequence[gantt.Span]) -> list[tuple[float, float]]:
    return [(span.start, span.end) for span in spans]


def _finding(rank: int, sent: Sequence[gantt.Span], backward: Sequence[gantt.Span]) -> Finding:
    """How long all-reduces were in flight, and how much of that backward hid."""
    in_flight = sum(end - start for start, end in gantt.joined(_times(sent)))
    hidden = gantt.lapped(_times(sent), _times(backward))
    head = f"On GPU {rank} something was in flight for {in_flight:.2f} milliseconds, "
    if hidden == 0:
        return Finding(head, "none of it during backward", ": the first all-reduce begins when the last gradient is there.",
                       "data")
    return Finding(head, f"{100 * hidden / in_flight:.0f} % of it during backward",
                   ": the gradients of late layers travel while early layers are still being computed.", "data")


def _sentence(report: Mapping[str, Any]) -> str:
    environment, spec = report["environment"], report["spec"]
    return (f"Recorded from {counted(spec['P'], 'process', 'processes')} on a machine with "
            f"{counted(environment['cpu_count'], 'CPU core')}: {spec['L']} layers of {spec['H']} × {spec['H']}, "
            f"{spec['T']} tokens each, PyTorch {environment['torch']}, {environment['backend']}.")
