"""Geometry of drawings: scales, ticks, smooth paths, squares, and labels that keep out of each other's way. Pure.

Lengths are pixels of a viewBox; y grows downwards, as in SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log2, log10

Point = tuple[float, float]


@dataclass(frozen=True)
class Linear:
    """Maps `first..last` to `start..end`, evenly."""

    first: float
    last: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.first) / (self.last - self.first) * (self.end - self.start)


@dataclass(frozen=True)
class Doubling:
    """Maps 1..last to `start..end`; each doubling takes the same length."""

    last: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + log2(value) / log2(self.last) * (self.end - self.start)

    def ticks(self) -> tuple[int, ...]:
        """1, 2, 4, ... up to the last."""
        return tuple(2**power for power in range(int(log2(self.last)) + 1))


def nice_ticks(top: float) -> tuple[float, ...]:
    """Ticks from 0 to at most `top`, four to six of them: quarters of it where that is whole, else round steps.

    Quarters suit our numbers: 64 gives 0, 16, 32, 48, 64, and the line at the top is a tick.
    """
    if top > 0 and top % 4 == 0 and _few_digits(top / 4):
        step = top / 4
    else:
        rough = top / 4
        power = 10.0 ** floor(log10(rough))
        step = next(size * power for size in (1, 2, 2.5, 5, 10) if size * power >= rough * 0.8)
    return tuple(step * index for index in range(int(top / step + 1e-9) + 1))


def _few_digits(step: float) -> bool:
    return step <= 16 or float(f"{step:.2g}") == step or step in {2**power for power in range(5, 24)}


def round_up(value: float) -> float:
    """The next round number: the first of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power of ten that is not below `value`."""
    power = 10.0 ** floor(log10(value))
    return next(size * power for size in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if size * power >= value * (1 - 1e-12))


def number(value: float) -> str:
    """A coordinate with at most one decimal."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def polyline(points: Sequence[Point]) -> str:
    """Path data of straight lines through the points."""
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)


@dataclass(frozen=True)
class Curve:
    """A smooth line through points, piece by piece, so that some pieces can be drawn solid and others dotted."""

    points: tuple[Point, ...]
    pieces: tuple[str, ...]  # pieces[i] leads from points[i] to points[i + 1]

    @property
    def path(self) -> str:
        """The whole line."""
        return self.path_of(range(len(self.pieces)))

    def path_of(self, chosen: Sequence[int]) -> str:
        """Path data of the chosen pieces; neighbours are joined."""
        data: list[str] = []
        previous = -2
        for index in chosen:
            if index != previous + 1:
                x, y = self.points[index]
                data.append(f"M{number(x)} {number(y)}")
            data.append(self.pieces[index])
            previous = index
        return "".join(data)


def smooth(points: Sequence[Point]) -> Curve:
    """Monotone cubic pieces (Fritsch & Butland 1984, doi 10.1137/0905021): through every point, never above or below what
    two neighbours span, and straight where the values are level."""
    slopes = _tangents(points)
    pieces = tuple(
        _cubic(points[index], points[index + 1], slopes[index], slopes[index + 1]) for index in range(len(points) - 1)
    )
    return Curve(tuple(points), pieces)


def _cubic(start: Point, end: Point, start_slope: float, end_slope: float) -> str:
    if start[1] == end[1]:
        return f"H{number(end[0])}"
    third = (end[0] - start[0]) / 3
    handles = (start[0] + third, start[1] + start_slope * third, end[0] - third, end[1] - end_slope * third, *end)
    return "C" + " ".join(number(value) for value in handles)


def _tangents(points: Sequence[Point]) -> list[float]:
    steps = [after[0] - before[0] for before, after in pairwise(points)]
    rises = [(after[1] - before[1]) / step for (before, after), step in zip(pairwise(points), steps, strict=True)]
    if len(rises) == 1:
        return [rises[0], rises[0]]
    inner = [_inner_slope(*step, *rise) for step, rise in zip(pairwise(steps), pairwise(rises), strict=True)]
    return [_end_slope(steps[0], steps[1], rises[0], rises[1]), *inner, _end_slope(steps[-1], steps[-2], rises[-1], rises[-2])]


def _inner_slope(before: float, after: float, rise_before: float, rise_after: float) -> float:
    """The slope at a point between two pieces: level where they turn or one is level, else a weighted harmonic mean."""
    if rise_before * rise_after <= 0:
        return 0.0
    weights = 2 * after + before, after + 2 * before
    return (weights[0] + weights[1]) / (weights[0] / rise_before + weights[1] / rise_after)


def _end_slope(near: float, far: float, rise: float, next_rise: float) -> float:
    """The slope at an end, from the parabola through the three outer points, at most thrice the outer piece's rise."""
    slope = ((2 * near + far) * rise - near * next_rise) / (near + far)
    if slope * rise <= 0:
        return 0.0
    return 3 * rise if abs(slope) > 3 * abs(rise) else slope


def squares(count: int, x: float, y: float, columns: int, size: float = 11, pitch: float = 13) -> str:
    """Path data of `count` squares in rows of `columns`, the first with its top left corner at (x, y)."""
    side = number(size)
    return "".join(
        f"M{number(x + index % columns * pitch)} {number(y + index // columns * pitch)}h{side}v{side}h-{side}z"
        for index in range(count)
    )


def squares_extent(count: int, columns: int, size: float = 11, pitch: float = 13) -> tuple[float, float]:
    """Width and height of what `squares` draws."""
    rows = ceil(count / columns)
    return (min(count, columns) - 1) * pitch + size, (rows - 1) * pitch + size


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> tuple[float, ...]:
    """The wanted positions, moved as little as it takes to stand `gap` apart between `low` and `high`.

    Labels keep the order of what they label. Neighbours that would collide form a block around their middle.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    blocks: list[tuple[float, int]] = []  # (top of the block, how many labels)
    for index in order:
        blocks.append((min(max(wanted[index], low), high), 1))
        while len(blocks) > 1 and blocks[-2][0] + blocks[-2][1] * gap > blocks[-1][0]:
            blocks[-2:] = [_merged(blocks[-2], blocks[-1], gap, low, high)]
    placed = [top + gap * position for top, size in blocks for position in range(size)]
    return tuple(placed[order.index(index)] for index in range(len(wanted)))


def _merged(upper: tuple[float, int], lower: tuple[float, int], gap: float, low: float, high: float) -> tuple[float, int]:
    size = upper[1] + lower[1]
    upper_middle = upper[0] + gap * (upper[1] - 1) / 2
    lower_middle = lower[0] + gap * (lower[1] - 1) / 2
    middle = (upper_middle * upper[1] + lower_middle * lower[1]) / size
    top = middle - gap * (size - 1) / 2
    return max(min(top, high - gap * (size - 1)), low), size


@dataclass(frozen=True)
class Box:
    """A rectangle that a text would cover."""

    left: float
    top: float
    right: float
    bottom: float

    def clear_of(self, points: Sequence[Point]) -> bool:
        """Whether no straight piece between neighbouring points, which run to the right, passes through the box."""
        for (x_0, y_0), (x_1, y_1) in pairwise(points):
            if x_1 < self.left or x_0 > self.right:
                continue
            rise = (y_1 - y_0) / (x_1 - x_0) if x_1 > x_0 else 0.0
            entry = y_0 + rise * (max(self.left, x_0) - x_0)
            exit_ = y_0 + rise * (min(self.right, x_1) - x_0)
            if min(entry, exit_) < self.bottom and max(entry, exit_) > self.top:
                return False
        return True

    def overlaps(self, other: Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )
