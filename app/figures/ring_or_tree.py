"""The figure *ring or tree*: time of an all-reduce by size, round a ring and over two trees, by the alpha-beta model."""

from __future__ import annotations

from dataclasses import dataclass

from app.figures.inputs import Field, Inputs
from app.figures.numbers import counted
from app.figures.time_chart import (
    KIB,
    NARROW,
    WIDE,
    Layout,
    Text,
    Tick,
    TimePlane,
    percent_text,
    rate_text,
    size_text,
    three_digits,
    time_plane,
    time_text,
)
from app.theory import latency

FIELDS = (
    Field("P", "GPUs", "GPUs", 2, 1024, 64),
    Field("size", "doublings of 1 KiB", "doublings", 0, 20, 10),
    Field("alpha", "µs a message", "µs", 1, 200, 10, symbol="α"),
    Field("B", "GB/s one way", "GB/s", 1, 900, 25),
)
MICROSECOND, GIGABYTE = 1e-6, 10**9
SIZES = tuple(KIB * 2**power for power in range(21))
SIZE_TICKS = 2**5


@dataclass(frozen=True)
class Timing:
    """One way to add up, at the reader's size."""

    name: str
    seconds: float
    line: str  # the class that draws it


@dataclass(frozen=True)
class TreeChart:
    layout: Layout
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[tuple[str, str], ...]  # class, path
    here: float
    spots: tuple[tuple[float, float], ...]
    crossing: float | None
    texts: tuple[Text, ...]


@dataclass(frozen=True)
class RingOrTreeView:
    ring: Timing
    tree: Timing
    crossover: float
    finding: tuple[str, str, str]
    wide: TreeChart
    narrow: TreeChart
    title: str
    table: tuple[tuple[str, str, str, str], ...]
    status: str


@dataclass(frozen=True)
class Network:
    """What the reader chose, in seconds and bytes."""

    P: int
    alpha: float
    B: float

    def ring(self, n: int) -> float:
        return latency.ring_all_reduce_seconds(self.P, n, self.alpha, self.B)

    def tree(self, n: int) -> float:
        return latency.double_tree_seconds(self.P, n, self.alpha, self.B)

    @property
    def crossover(self) -> float:
        return latency.crossover_bytes(self.P, self.alpha, self.B)


def compute(inputs: Inputs) -> RingOrTreeView:
    """All times come from app.theory.latency."""
    network = Network(inputs.number("P"), inputs.number("alpha") * MICROSECOND, inputs.number("B") * GIGABYTE)
    n = KIB * 2 ** inputs.number("size")
    ring, tree = Timing("ring", network.ring(n), "curve"), Timing("tree", network.tree(n), "curve second")
    finding = _finding(network, n, ring, tree)
    return RingOrTreeView(
        ring, tree, network.crossover, finding, _chart(network, n, WIDE), _chart(network, n, NARROW),
        title=f"Time of an all-reduce against its size on {network.P} GPUs, alpha {time_text(network.alpha)} and "
              f"{rate_text(network.B)}: ring and double tree.",
        table=tuple((size_text(size), time_text(network.ring(size)), time_text(network.tree(size)), _faster(network, size))
                    for size in SIZES[::2]),
        status="".join(finding),
    )


def _faster(network: Network, n: int) -> str:
    ring, tree = network.ring(n), network.tree(n)
    return "equal" if ring == tree else "ring" if ring < tree else "tree"


def _finding(network: Network, n: int, ring: Timing, tree: Timing) -> tuple[str, str, str]:
    """Which way is faster at the reader's size, by how much, and where that turns."""
    where = f"{size_text(n)} on {counted(network.P, 'GPU')}: "
    fast, slow = sorted((ring, tree), key=lambda timing: timing.seconds)
    most = percent_text(100 / (network.P - 1))
    turn = (f"From {size_text(network.crossover)} on the ring is ahead, by {most} at most." if network.crossover
            else "On two GPUs a tree saves no message and sends twice as much.")
    ratio = slow.seconds / fast.seconds
    if ratio < 1.05:
        return where, "ring and tree take nearly the same time", f", {time_text(fast.seconds)}. {turn}"
    factor = "twice" if 1.95 <= ratio < 2.05 else f"{three_digits(round(ratio, 1))} times"
    return where, f"the {fast.name} is {factor} as fast", (
        f", {time_text(fast.seconds)} against {time_text(slow.seconds)}. {turn}")


def _chart(network: Network, n: int, layout: Layout) -> TreeChart:
    every = [law(size) for law in (network.ring, network.tree) for size in SIZES]
    plane = time_plane(layout, SIZES, every)
    crossing = plane.x(network.crossover) if SIZES[0] < network.crossover < SIZES[-1] else None
    return TreeChart(
        layout=layout, x_ticks=plane.size_ticks(SIZE_TICKS), y_ticks=plane.time_ticks(),
        lines=(("curve second", plane.line(SIZES, network.tree)), ("curve", plane.line(SIZES, network.ring))),
        here=plane.x(n), spots=(plane.at(n, network.ring(n)), plane.at(n, network.tree(n))), crossing=crossing,
        texts=(*_names(network, plane), *_crossing_text(network, plane, crossing)),
    )


def _names(network: Network, plane: TimePlane) -> tuple[Text, ...]:
    """Names at the small end, where messages count and the lines are apart; on two GPUs at the large one."""
    layout = plane.layout
    if network.P == 2:
        ring, tree = plane.y(network.ring(SIZES[-1])), plane.y(network.tree(SIZES[-1]))
        return (Text(layout.right, tree - 10, "end", "tree", strong=True),
                Text(layout.right, ring + 36, "end", "ring", strong=True))
    ring, tree = plane.y(network.ring(SIZES[0])), plane.y(network.tree(SIZES[0]))
    return (Text(layout.left + 10, ring - 10, "start", "ring", strong=True),
            Text(layout.left + 10, tree + 22 if tree < layout.bottom - 28 else tree - 10, "start", "tree", strong=True))


def _crossing_text(network: Network, plane: TimePlane, crossing: float | None) -> tuple[Text, ...]:
    if crossing is None:
        return ()
    anchor = "end" if crossing > (plane.layout.left + plane.layout.right) / 2 else "start"
    x = crossing - 8 if anchor == "end" else crossing + 8
    return (Text(x, plane.layout.top - 2, anchor, f"ring ahead from {size_text(network.crossover)}"),)
