"""Overlap: the drawing is the recorded log, event by event, and its sentence is computed from nothing else."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from app.figures import FIGURES
from app.figures.engine import figure_state
from app.figures.overlap import RECORDED, RUNS, OverlapView

REPORTS = json.loads(RECORDED.read_text())
every_log = pytest.mark.parametrize(("run", "rank"), [(run, rank) for run in RUNS for rank in (0, 1)])


def overlap(run: str, rank: int) -> OverlapView:
    state = figure_state(FIGURES["overlap"], {"run": run, "rank": str(rank)})
    assert not state.errors
    assert isinstance(state.view, OverlapView)
    return state.view


def logged(run: str, rank: int) -> list[dict[str, Any]]:
    return [event for event in REPORTS[RUNS.index(run)]["measured"]["timeline"] if event["rank"] == rank]


def test_all_three_runs_sent_what_was_predicted_and_ended_with_equal_weights() -> None:
    assert [report["verdict"] for report in REPORTS] == ["equal"] * 3
    assert len({tuple(report["measured"]["payload_bytes_by_rank"]) for report in REPORTS}) == 1
    weights = [report["measured"]["weights"] for report in REPORTS]
    assert all(one["max_difference"] <= one["tolerance"] for one in weights)


@every_log
def test_every_event_of_the_log_is_drawn_and_in_the_table(run: str, rank: int) -> None:
    view, events = overlap(run, rank), logged(run, rank)
    by_layer = any(event["name"].startswith("backward of") for event in events)
    expected = [event for event in events if not (by_layer and event["name"] == "backward")]
    origin = min(event["start_seconds"] for event in expected)
    assert sorted(round(span.start, 6) for span in view.spans) == sorted(
        round(1000 * (event["start_seconds"] - origin), 6) for event in expected)
    for chart in (view.wide, view.narrow):
        assert len(chart.blocks) == len(view.spans)
        assert all(chart.layout.left <= block.x and block.x + block.width <= chart.layout.width for block in chart.blocks)
        last = max(span.end for span in view.spans)
        scale = (chart.layout.width - 2 - chart.layout.left) / last
        for span, block in zip(view.spans, chart.blocks, strict=True):
            assert block.x == pytest.approx(chart.layout.left + 1 + span.start * scale)


@every_log
def test_all_reduces_have_a_lane_each_and_are_as_many_as_the_run_says(run: str, rank: int) -> None:
    sent = [span for span in overlap(run, rank).spans if span.kind == "sent"]
    assert [span.lane for span in sent] == list(range(1, len(sent) + 1))
    assert len(sent) == {"buckets": 4, "one": 1, "by_hand": 4}[run]


@every_log
def test_the_finding_is_what_the_log_says(run: str, rank: int) -> None:
    """Counted in microseconds, one by one: at how many something was sent, and at how many of these backward went on."""
    view = overlap(run, rank)
    last = round(1000 * max(span.end for span in view.spans))
    going_on = {kind: [False] * (last + 1) for kind in ("sent", "backward")}
    for span in view.spans:
        for moment in range(round(1000 * span.start), round(1000 * span.end)):
            if span.kind in going_on:
                going_on[span.kind][moment] = True
    flying = sum(going_on["sent"])
    hidden = sum(sent and back for sent, back in zip(going_on["sent"], going_on["backward"], strict=True))
    stated = re.search(r"in flight for ([\d.]+) milliseconds", view.finding.text)
    assert stated is not None
    assert float(stated[1]) == pytest.approx(flying / 1000, abs=0.02)
    share = re.match(r"(\d+) %", view.finding.strong)
    if share is None:
        assert view.finding.strong == "none of it during backward"
        assert hidden == 0
    else:
        assert int(share[1]) == pytest.approx(100 * hidden / flying, abs=1)


def test_only_ddp_with_several_buckets_sends_during_backward() -> None:
    assert ["none" in overlap(run, 0).finding.strong for run in RUNS] == [False, True, True]
