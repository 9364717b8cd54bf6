"""The ring as a drawing: GPUs along a closed way, what each chunk of each buffer holds so far, and the messages of one step.

Inside a GPU stands one column a chunk, and in it one segment a GPU whose numbers may be added in: tinted where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.figures import gpus, svg
from app.figures.gpus import CLEARANCE, HEAD, HEIGHT, PAYLOAD_GAP, WIDTH, Gpu, Link
from kernels.schedule import Step, chunk_sizes

PITCH_X, PITCH_Y = 268.0, 280.0  # from GPU to GPU; four stand as in the other drawings
TIGHT_X, TIGHT_Y = 229.0, 216.0  # where there are more
INSIDE_LEFT, INSIDE_TOP, INSIDE_WIDTH, INSIDE_HEIGHT = 13.0, 34.0, 106.0, 52.0
SEGMENT_GAP = 2.0
UNDERLINE = 91.0
# Two GPUs have both links between them: at these heights, six squares abreast, and with room for a tall payload above.
NEAR, FAR, PAIR_TOP = 18.0, 82.0, 32.0
PAIR_PAYLOAD, LEVEL_PAYLOAD, UPRIGHT_PAYLOAD = 6, 4, 2

Holding = tuple[tuple[frozenset[int], ...], ...]  # by rank, by chunk: whose numbers are added in


@dataclass(frozen=True)
class ChunkName:
    """The number of a chunk on its way, beside its squares."""

    x: float
    y: float
    anchor: str
    text: str


@dataclass(frozen=True)
class RingDrawing:
    """One of the two sizes. `unused` are the links before the first step; `arrived` underlines what the step brought."""

    width: float
    height: float
    gpus: tuple[Gpu, ...]
    links: tuple[Link, ...]
    names: tuple[ChunkName, ...]
    unused: str
    arrived: str
    middle: svg.Point | None


@dataclass(frozen=True)
class Way:
    """One link of the ring: a straight line or, with `corner`, one that turns once. Up to `abreast` squares side by side."""

    start: svg.Point
    end: svg.Point
    abreast: int
    corner: svg.Point | None = None

    @property
    def level(self) -> bool:
        """Whether the part that carries the payload is level."""
        return self.corner is not None or self.start[1] == self.end[1]

    @property
    def points(self) -> tuple[svg.Point, ...]:
        return (self.start, self.end) if self.corner is None else (self.start, self.corner, self.end)


def draw(num_elements: int, holding: Holding, step: Step, most_columns: int) -> RingDrawing:
    """GPUs in at most `most_columns` columns; `step` is the one just done, empty before the first."""
    places = _places(len(holding), most_columns)
    ways = [_way(places, rank) for rank in range(len(holding))]
    sizes = chunk_sizes(num_elements, len(holding))
    sent = {transfer.sender: transfer for transfer in step}
    moving = [(way, sent[rank].chunk) for rank, way in enumerate(ways) if rank in sent]
    columns = [x for x, _ in places]
    return RingDrawing(
        width=max(columns) + WIDTH, height=max(y for _, y in places) + HEIGHT + min(y for _, y in places),
        gpus=tuple(_gpu(rank, place, holding[rank]) for rank, place in enumerate(places)),
        links=tuple(_link(way, sizes[chunk]) for way, chunk in moving),
        names=tuple(_name(way, chunk, sizes[chunk], max(columns)) for way, chunk in moving),
        unused="" if step else "".join(svg.polyline(way.points) for way in ways),
        arrived="".join(_underline(places[transfer.receiver], transfer.chunk, len(holding)) for transfer in step),
        middle=((max(columns) + WIDTH) / 2, max(y for _, y in places) / 2 + HEIGHT / 2) if len(holding) > 2 else None,
    )


def _places(world_size: int, most_columns: int) -> tuple[svg.Point, ...]:
    """Top left corners, clockwise from GPU 0: along the top, down the right side, back along the bottom."""
    across = min(most_columns, -(-world_size // 2))
    if across > 2:
        back = world_size - across
        top = [(rank * TIGHT_X, 0.0) for rank in range(across)]
        return (*top, *((column * TIGHT_X, PITCH_Y) for column in range(across - 1, across - 1 - back, -1)))
    if world_size == 2:
        return (0.0, PAIR_TOP), (PITCH_X, PAIR_TOP)
    rows = -(-world_size // 2)
    pitch = PITCH_Y if rows == 2 else TIGHT_Y
    right = [(PITCH_X, row * pitch) for row in range((world_size + 1) // 2)]
    left = [(0.0, row * pitch) for row in range(world_size - len(right) - 1, 0, -1)]
    return ((0.0, 0.0), *right, *left)


def _way(places: Sequence[svg.Point], rank: int) -> Way:
    """From a GPU to its right-hand neighbour on the ring."""
    (x, y), (to_x, to_y) = places[rank], places[(rank + 1) % len(places)]
    middle_x, middle_y = WIDTH / 2, HEIGHT / 2
    out = CLEARANCE - 4
    if y == to_y:
        pair = len(places) == 2
        height = middle_y if not pair else NEAR if rank == 0 else FAR
        start, end = (x + WIDTH + out, to_x - out) if to_x > x else (x - out, to_x + WIDTH + out)
        return Way((start, y + height), (end, y + height), PAIR_PAYLOAD if pair else LEVEL_PAYLOAD)
    if x == to_x:
        start, end = (y + HEIGHT + out, to_y - out) if to_y > y else (y - out, to_y + HEIGHT + out)
        return Way((x + middle_x, start), (x + middle_x, end), UPRIGHT_PAYLOAD)
    return Way((x - out, y + middle_y), (to_x + middle_x, to_y + HEIGHT + out), LEVEL_PAYLOAD,
               corner=(to_x + middle_x, y + middle_y))


def _gpu(rank: int, place: svg.Point, chunks: Sequence[frozenset[int]]) -> Gpu:
    """A package with one column a chunk, one segment for every GPU's contribution to it."""
    world_size = len(chunks)
    paths = {True: "", False: ""}
    for chunk, contributors in enumerate(chunks):
        for contributor in range(world_size):
            paths[contributor in contributors] += _segment(place, chunk, contributor, world_size)
    empty = gpus.gpu(rank, *place, H=0, L=0, holds=frozenset())
    return replace(empty, held=paths[True], absent=paths[False])


def _segment(place: svg.Point, chunk: int, contributor: int, world_size: int) -> str:
    wide, high = INSIDE_WIDTH / world_size, INSIDE_HEIGHT / world_size
    left, top = place[0] + INSIDE_LEFT + chunk * wide, place[1] + INSIDE_TOP + contributor * high
    across, down = svg.number(wide - SEGMENT_GAP), svg.number(high - SEGMENT_GAP)
    return f"M{svg.number(left)} {svg.number(top)}h{across}v{down}h-{across}z"


def _underline(place: svg.Point, chunk: int, world_size: int) -> str:
    wide = INSIDE_WIDTH / world_size
    left = place[0] + INSIDE_LEFT + chunk * wide
    return f"M{svg.number(left)} {svg.number(place[1] + UNDERLINE)}h{svg.number(wide - SEGMENT_GAP)}"


def _payload(way: Way, count: int) -> tuple[svg.Point, tuple[float, float], int]:
    """Where a message's squares lie, how much room they take, and how many stand abreast."""
    abreast = min(max(count, 1), way.abreast)
    width, height = svg.squares_extent(max(count, 1), abreast)
    first, second = way.points[:2]
    sign = 1 if second[0] + second[1] > first[0] + first[1] else -1
    lean = 0.0 if way.corner else sign * HEAD / 3
    x, y = (first[0] + second[0]) / 2 - lean * way.level, (first[1] + second[1]) / 2 - lean * (not way.level)
    return (x - width / 2, y - height / 2), (width, height), abreast


def _link(way: Way, count: int) -> Link:
    """An arrow with its message; a chunk without numbers leaves the arrow bare, because nothing is sent."""
    (left, top), (width, height), abreast = _payload(way, count)
    before, tip = way.points[-2:]
    level = before[1] == tip[1]
    sign = 1 if tip[0] + tip[1] > before[0] + before[1] else -1
    shaft = (tip[0] - sign * HEAD * 0.8, tip[1]) if level else (tip[0], tip[1] - sign * HEAD * 0.8)
    gap = (left - PAYLOAD_GAP, top - PAYLOAD_GAP, width + 2 * PAYLOAD_GAP, height + 2 * PAYLOAD_GAP)
    return Link(
        line=svg.polyline([*way.points[:-1], shaft]), head=gpus.head(tip, level, sign),
        gap=gap if count else (0, 0, 0, 0), payload=svg.squares(count, left, top, abreast), count=count,
    )


def _name(way: Way, chunk: int, count: int, last_column: float) -> ChunkName:
    """Over a level payload (under the lower one of two GPUs), on the inner side of an upright one."""
    (left, top), (width, height), _ = _payload(way, count)
    text = f"chunk {chunk}"
    if way.level:
        below = way.abreast == PAIR_PAYLOAD and way.start[0] > way.end[0]
        return ChunkName(left + width / 2, top + height + 21 if below else top - 9, "middle", text)
    if way.start[0] > last_column:
        return ChunkName(left - 9, top + height / 2 + 5, "end", text)
    return ChunkName(left + width + 9, top + height / 2 + 5, "start", text)
