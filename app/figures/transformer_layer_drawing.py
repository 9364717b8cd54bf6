"""The drawing of the figure *transformer layer*: two halves, each with blocks on top and a lane for each pass. Geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.figures import svg
from app.figures.matrix_split_drawing import Text

FORWARD, AGAIN, BACKWARD = "forward", "forward again", "backward"
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = "all-reduce", "all-gather", "reduce-scatter"
SHORT = {ALL_REDUCE: "all-reduce", ALL_GATHER: "gather", REDUCE_SCATTER: "scatter"}
BLOCKS = {
    "attention": (("norm", ""), ("Q, K, V", "columns"), ("softmax", "by heads"), ("output", "rows"), ("dropout", "add")),
    "MLP": (("norm", ""), ("up", "columns"), ("GeLU", "apart"), ("down", "rows"), ("dropout", "add")),
}
TOP, BLOCK, LANE = 30.0, 48.0, 62.0
WHOLE, HEIGHT = 20.0, 16.0  # an all-reduce; a gather or a scatter is half as wide, because it sends half
HALF_GAP = 24.0


@dataclass(frozen=True)
class Operation:
    """One collective: in which pass and half, at f (before the column split) or g (after the row split)."""

    name: str
    half: str
    place: str
    kind: str


@dataclass(frozen=True)
class Block:
    """A part of the layer: cut over the GPUs, or whole on each (or cut by tokens)."""

    x: float
    width: float
    y: float
    cut: bool
    lines: tuple[Text, ...]


@dataclass(frozen=True)
class Mark:
    """A collective on a lane, as wide as it is costly."""

    x: float
    y: float
    width: float
    label: Text


@dataclass(frozen=True)
class Lane:
    """One pass through a half."""

    path: str
    name: Text


@dataclass(frozen=True)
class Layout:
    """One of the two drawings. `widths` are those of the five blocks, `joint` the room of f and of g."""

    width: float
    widths: tuple[float, ...]
    joint: float
    stacked: bool

    @property
    def half(self) -> float:
        return sum(self.widths) + 2 * self.joint + 2 * 4


WIDE = Layout(820, (50, 68, 66, 66, 62), 40, stacked=False)
NARROW = Layout(350, (42, 62, 64, 54, 58), 30, stacked=True)


@dataclass(frozen=True)
class Drawing:
    width: float
    height: float
    blocks: tuple[Block, ...]
    lanes: tuple[Lane, ...]
    marks: tuple[Mark, ...]
    joints: tuple[Text, ...]
    heads: tuple[Text, ...]


def draw(operations: Sequence[Operation], passes: Sequence[str], layout: Layout) -> Drawing:
    """Both halves, side by side or one under the other."""
    blocks: list[Block] = []
    lanes: list[Lane] = []
    marks: list[Mark] = []
    joints: list[Text] = []
    heads: list[Text] = []
    height = TOP + BLOCK + LANE * len(passes) + 6
    for index, half in enumerate(BLOCKS):
        x = 0 if layout.stacked else index * (layout.width - layout.half)
        y = index * (height + HALF_GAP) if layout.stacked else 0
        heads.append(Text(x, y + 14, half if half == "MLP" else half.capitalize(), "start", strong=True))
        places = _places(layout, x)
        blocks += _blocks(layout, half, x, y + TOP)
        joints += [Text(at, y + TOP + BLOCK / 2 + 5, name, strong=True) for name, at in places.items()]
        for row, name in enumerate(passes):
            level = y + TOP + BLOCK + LANE * row + 30
            lanes.append(_lane(layout, name, x, level))
            marks += [_mark(one, places[one.place], level) for one in operations if one.half == half and one.name == name]
    whole = 2 * height + HALF_GAP if layout.stacked else height
    return Drawing(layout.width, whole, tuple(blocks), tuple(lanes), tuple(marks), tuple(joints), tuple(heads))


def _places(layout: Layout, x: float) -> dict[str, float]:
    """Where f and g stand."""
    before, column, inside, row, _ = layout.widths
    f = x + before + layout.joint / 2
    return {"f": f, "g": f + layout.joint + column + inside + row + 8}


def _blocks(layout: Layout, half: str, x: float, y: float) -> list[Block]:
    blocks: list[Block] = []
    for index, (width, lines) in enumerate(zip(layout.widths, BLOCKS[half], strict=True)):
        words = [line for line in lines if line]
        first = y + BLOCK / 2 + 5 - 9 * (len(words) - 1)
        texts = tuple(Text(x + width / 2, first + 18 * row, line) for row, line in enumerate(words))
        blocks.append(Block(x, width, y, 0 < index < len(layout.widths) - 1, texts))
        x += width + (layout.joint if index in (0, 3) else 4)
    return blocks


def _lane(layout: Layout, name: str, x: float, y: float) -> Lane:
    end = x + layout.half
    tip = f"M{svg.number(x + 6)} {svg.number(y - 4)}l-6 4l6 4" if name == BACKWARD else (
        f"M{svg.number(end - 6)} {svg.number(y - 4)}l6 4l-6 4")
    middle = x + layout.widths[0] + layout.joint + sum(layout.widths[1:4]) / 2 + 4
    return Lane(f"M{svg.number(x)} {svg.number(y)}H{svg.number(end)}{tip}", Text(middle, y - 9, name))


def _mark(operation: Operation, x: float, y: float) -> Mark:
    width = WHOLE if operation.kind == ALL_REDUCE else WHOLE / 2
    return Mark(x - width / 2, y - HEIGHT / 2, width, Text(x, y + 24, SHORT[operation.kind]))
