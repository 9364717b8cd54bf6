"""Timelines: spans on lanes over one axis of time, as rectangles, names and ticks. Pure geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.figures import svg

BLOCK = 22.0  # height of a block
NAMED = 12.0  # the narrowest block that has room for a letter
HAIR = 1.0  # the narrowest block that is seen, and what keeps neighbours apart


@dataclass(frozen=True)
class Span:
    """Something done from `start` to `end`. `kind` is how it looks, `letter` what stands on it, `name` what a table says."""

    lane: int
    start: float
    end: float
    kind: str
    name: str
    letter: str = ""


@dataclass(frozen=True)
class Layout:
    """One of the two drawings. Lanes are named at their left; without room there (`left` is 0), above."""

    width: float
    left: float
    pitch: float

    @property
    def names_above(self) -> bool:
        return self.left == 0


WIDE = Layout(width=820, left=104, pitch=34)
NARROW = Layout(width=350, left=0, pitch=52)


@dataclass(frozen=True)
class Block:
    """A span as drawn."""

    kind: str
    x: float
    y: float
    width: float
    letter: str

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass(frozen=True)
class LaneName:
    text: str
    y: float


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class Chart:
    """A timeline, drawn."""

    layout: Layout
    height: float
    axis_y: float
    names: tuple[LaneName, ...]
    blocks: tuple[Block, ...]
    ticks: tuple[Tick, ...]


def chart(spans: Sequence[Span], lanes: Sequence[str], last: float, layout: Layout, ticks: Sequence[float] = ()) -> Chart:
    """The spans between 0 and `last`, with the times in `ticks` labelled."""
    scale = scale_of(last, layout)
    top = layout.pitch - BLOCK if layout.names_above else 0.0
    rows = [top + lane * layout.pitch for lane in range(len(lanes))]
    bottom = rows[-1] + BLOCK + 10
    return Chart(
        layout=layout, height=bottom + (26 if ticks else 0), axis_y=bottom,
        names=tuple(LaneName(name, row - 7 if layout.names_above else row + 16) for name, row in zip(lanes, rows, strict=True)),
        blocks=tuple(_block(span, rows[span.lane], scale) for span in spans),
        ticks=tuple(Tick(scale(time), f"{time:g}") for time in ticks),
    )


def scale_of(last: float, layout: Layout) -> svg.Linear:
    """Where a time lies; the last one keeps a pixel from the edge for its outline."""
    return svg.Linear(0, last, layout.left + 1, layout.width - 1)


def _block(span: Span, y: float, scale: svg.Linear) -> Block:
    width = max(scale(span.end) - scale(span.start) - HAIR, HAIR)
    return Block(span.kind, scale(span.start), y, width, span.letter if width >= NAMED else "")


def lapped(spans: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> float:
    """How long something of `spans` and something of `others` go on at once."""
    return sum(
        max(0.0, min(end, other_end) - max(start, other_start))
        for start, end in joined(spans) for other_start, other_end in joined(others)
    )


def joined(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same times without overlaps, in order."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged
