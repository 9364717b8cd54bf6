"""Time against message size, both on doubling scales: the plane, its ticks, and how sizes and times are written. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import floor, log10

from app.figures import svg

KIB, MIB, GIB = 2**10, 2**20, 2**30
NBSP = "\N{NO-BREAK SPACE}"
CHARACTER = 6.9  # pixels of an average character at 13 to 14 px


@dataclass(frozen=True)
class Layout:
    """One of the two sizes of a drawing; the plot lies between left and right, top and bottom."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float


WIDE = Layout(820, 350, 62, 800, 40, 300)
NARROW = Layout(350, 350, 56, 332, 40, 300)


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class Text:
    """A label; `strong` ones name a line or a point."""

    x: float
    y: float
    anchor: str
    text: str
    strong: bool = False


@dataclass(frozen=True)
class Logarithmic:
    """Maps first..last to start..end; equal factors take equal lengths."""

    first: float
    last: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = log10(value / self.first) / log10(self.last / self.first)
        return self.start + share * (self.end - self.start)


@dataclass(frozen=True)
class TimePlane:
    """Where a size in bytes and a time in seconds lie."""

    layout: Layout
    x: Logarithmic
    y: Logarithmic

    def at(self, size: float, seconds: float) -> svg.Point:
        return self.x(size), self.y(seconds)

    def line(self, sizes: Sequence[int], seconds: Callable[[int], float]) -> str:
        """Path data of a law over these sizes."""
        return svg.polyline([self.at(size, seconds(size)) for size in sizes])

    def size_ticks(self, factor: int) -> tuple[Tick, ...]:
        """A tick at every `factor`-th of the sizes."""
        sizes = [round(self.x.first)]
        while sizes[-1] * factor <= self.x.last:
            sizes.append(sizes[-1] * factor)
        return tuple(Tick(self.x(size), size_text(size)) for size in sizes)

    def time_ticks(self) -> tuple[Tick, ...]:
        """A tick at every power of ten."""
        powers = range(round(log10(self.y.first)), round(log10(self.y.last)) + 1)
        return tuple(Tick(self.y(10.0**power), time_text(10.0**power)) for power in powers)


def time_plane(layout: Layout, sizes: Sequence[int], seconds: Sequence[float]) -> TimePlane:
    """Whole powers of ten around all of these times."""
    low, high = 10.0 ** floor(log10(min(seconds))), 10.0 ** (floor(log10(max(seconds))) + 1)
    return TimePlane(layout, Logarithmic(min(sizes), max(sizes), layout.left, layout.right),
                     Logarithmic(low, high, layout.bottom, layout.top))


def size_text(size: float) -> str:
    """1 KiB, 1.5 MiB, 640 B."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{three_digits(size / unit)}{NBSP}{name}"
    return f"{three_digits(size)}{NBSP}B"


def time_text(seconds: float) -> str:
    """210 µs, 1.3 ms, 2 s."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit * 0.9995:
            return f"{three_digits(seconds / unit)}{NBSP}{name}"
    return f"{three_digits(seconds * 1e6)}{NBSP}µs"


def rate_text(bytes_per_second: float) -> str:
    """2.1 GB/s, 340 MB/s: decimal units, as links are sold."""
    for unit, name in ((1e9, "GB/s"), (1e6, "MB/s")):
        if bytes_per_second >= unit * 0.9995:
            return f"{three_digits(bytes_per_second / unit)}{NBSP}{name}"
    return f"{three_digits(bytes_per_second / 1e3)}{NBSP}kB/s"


def percent_text(percent: float) -> str:
    """1.6 %, 23 %."""
    return f"{three_digits(round(percent, 1 if percent < 9.95 else 0))}{NBSP}%"


def three_digits(value: float) -> str:
    """At most three significant digits, and no empty decimals: 1,024, 212, 21.3, 2.13, 2, 0.5."""
    decimals = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text
