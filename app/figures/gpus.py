"""GPUs and links as drawings: a package with pins and the whole model inside, an arrow with its payload. Pure geometry."""

from __future__ import annotations

from dataclasses import dataclass

from app.figures import svg

WIDTH, HEIGHT = 132.0, 100.0  # with pins
CELL_PITCH = 13.0
CELLS_LEFT, CELLS_TOP = 13.0, 35.0
LAYER_GAP = 4.0
CLEARANCE = 7.0  # between a link and what it joins
HEAD = 9.0
PAYLOAD_GAP = 6.0  # paper around the payload, so that the line stops short of it


@dataclass(frozen=True)
class Gpu:
    """A package at (x, y). `held` and `absent` are the squares of the model that it has and lacks."""

    rank: int
    x: float
    y: float
    pins: str
    held: str
    absent: str
    idle: bool


@dataclass(frozen=True)
class Link:
    """A line in use: arrow head and payload, which sits on a paper-coloured gap."""

    line: str
    head: str
    gap: tuple[float, float, float, float]  # x, y, width, height
    payload: str
    count: int


def gpu(rank: int, x: float, y: float, H: int, L: int, holds: frozenset[tuple[int, int]], idle: bool = False) -> Gpu:
    """A GPU that holds the given (layer, row) pairs of a model with L layers of H x H side by side."""
    held: list[str] = []
    absent: list[str] = []
    for layer in range(L):
        left = x + CELLS_LEFT + layer * (H * CELL_PITCH + LAYER_GAP)
        for row in range(H):
            squares = svg.squares(H, left, y + CELLS_TOP + row * CELL_PITCH, H)
            (held if (layer, row) in holds else absent).append(squares)
    return Gpu(rank, x, y, _pins(x, y), "".join(held), "".join(absent), idle)


def _pins(x: float, y: float) -> str:
    upright = "".join(f"M{svg.number(x + at)} {svg.number(y + side)}v4" for at in (22, 44, 66, 88, 110) for side in (0, 96))
    level = "".join(f"M{svg.number(x + side)} {svg.number(y + at)}h4" for at in (18, 34, 50, 66, 82) for side in (0, 128))
    return upright + level


def link(start: svg.Point, end: svg.Point, count: int) -> Link:
    """An arrow from start to end, level or upright, with `count` squares at its middle: four abreast at most."""
    level = start[1] == end[1]
    sign = 1 if (end[0] > start[0] if level else end[1] > start[1]) else -1
    columns = min(count, 4) if level else min(count, 2)
    width, height = svg.squares_extent(count, columns)
    middle = ((start[0] + end[0]) / 2 - sign * HEAD / 3 * level, (start[1] + end[1]) / 2 - sign * HEAD / 3 * (not level))
    left, top = middle[0] - width / 2, middle[1] - height / 2
    shaft = (end[0] - sign * HEAD * 0.8, end[1]) if level else (end[0], end[1] - sign * HEAD * 0.8)
    return Link(
        line=svg.polyline([start, shaft]), head=head(end, level, sign),
        gap=(left - PAYLOAD_GAP, top - PAYLOAD_GAP, width + 2 * PAYLOAD_GAP, height + 2 * PAYLOAD_GAP),
        payload=svg.squares(count, left, top, columns), count=count,
    )


def head(tip: svg.Point, level: bool, sign: int) -> str:
    """An arrow head with its tip at a point; `sign` is 1 where it points right or down."""
    x, y = tip
    back = -sign * HEAD
    corners = [(x, y), (x + back, y - HEAD / 2), (x + back, y + HEAD / 2)] if level else [
        (x, y), (x - HEAD / 2, y + back), (x + HEAD / 2, y + back)]
    return f"{svg.polyline(corners)}z"
