"""The drawing of the figure *matrix split*: a row for each GPU, five things in it, sums under what is added up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.figures import svg

HELD, ABSENT, SENT, ZERO, LEFT_OVER = "held", "none", "cell", "zero", "open"  # classes of figures.css
INPUT, FIRST, MIDDLE, SECOND, OUTPUT = range(5)
ROW_GAP, IDLE_ROW, AFTER_IDLE, SUM_ROOM = 20.0, 26.0, 12.0, 74.0


@dataclass(frozen=True)
class Share:
    """What one GPU has: rows or columns `start` to `stop` of H. Empty for a GPU that idles."""

    rank: int
    start: int
    stop: int

    @property
    def idle(self) -> bool:
        return self.start == self.stop

    def __contains__(self, index: int) -> bool:
        return self.start <= index < self.stop


@dataclass(frozen=True)
class Part:
    """One of the five things as one GPU has it: kinds of its squares row by row, and the stretch that it multiplies."""

    rows: tuple[tuple[str, ...], ...]
    used: Share | None = None

    def count(self, kind: str) -> int:
        return sum(row.count(kind) for row in self.rows)


@dataclass(frozen=True)
class Text:
    """Words at a place; `strong` ones name something."""

    x: float
    y: float
    text: str
    anchor: str = "middle"
    strong: bool = False


@dataclass(frozen=True)
class Row:
    """One GPU: its name and its squares by class."""

    name: Text
    idle: bool
    shapes: tuple[tuple[str, str], ...]
    used: str


@dataclass(frozen=True)
class Layout:
    """One of the two drawings. Names stand beside a row, or above it where there is no room."""

    width: float
    left: float
    side: float
    gap: float
    name_room: float
    top: float
    words: Mapping[str, str]  # shorter ones for heads, where there is no room

    def x(self, place: int) -> float:
        return self.left + place * (self.side + self.gap)

    def middle(self, place: int) -> float:
        return self.x(place) + self.side / 2


WIDE = Layout(width=820, left=100, side=64, gap=93, name_room=0, top=56, words={})
NARROW = Layout(width=350, left=16, side=48, gap=19, name_room=22, top=56, words={
    "partial sums": "parts", "its columns": "columns", "its rows": "rows", "its slice": "slice", "with zeros": "and zeros",
})


@dataclass(frozen=True)
class Drawing:
    width: float
    height: float
    heads: tuple[Text, ...]
    rows: tuple[Row, ...]
    signs: tuple[Text, ...]
    rules: str
    sums: str
    notes: tuple[Text, ...]


@dataclass(frozen=True)
class Content:
    """What is drawn, before it has a place. `signs` stand between two neighbouring things; `sums` are places that are added
    up, each with two lines of text; `heads` are two lines over each of the five."""

    H: int
    heads: tuple[tuple[str, str], ...]
    shares: tuple[Share, ...]
    parts: tuple[tuple[Part, ...], ...]  # of each working GPU, the five things
    signs: tuple[str, ...]
    sums: dict[int, tuple[str, str]]


def draw(content: Content, layout: Layout) -> Drawing:
    """Everything at its place in one layout."""
    rows: list[Row] = []
    signs: list[Text] = []
    y = layout.top
    for share, parts in zip(content.shares, content.parts, strict=True):
        rows.append(_row(content, layout, share, parts, y))
        if not share.idle:
            signs += _signs(content, layout, y + layout.name_room, share.rank)
        y += (IDLE_ROW if share.idle else layout.side + ROW_GAP) + layout.name_room * (not share.idle)
    y += AFTER_IDLE * content.shares[-1].idle
    heads = [Text(layout.middle(place), 16 + 18 * line, layout.words.get(text, text), strong=line == 0)
             for place, lines in enumerate(content.heads) for line, text in enumerate(lines)]
    rules, sums, notes = _sums(content, layout, y)
    height = y + (SUM_ROOM if content.sums else 0)
    return Drawing(layout.width, height, tuple(heads), tuple(rows), tuple(signs), rules, sums, notes)


def _row(content: Content, layout: Layout, share: Share, parts: tuple[Part, ...], y: float) -> Row:
    beside = not layout.name_room
    if share.idle:
        return Row(Text(0, y + 16, f"GPU {share.rank}, idle", "start"), True, (), "")
    name = Text(0, y + (layout.side / 2 + 5 if beside else 14), f"GPU {share.rank}", "start", strong=True)
    shapes: dict[str, str] = {}
    used = ""
    for place, part in enumerate(parts):
        top = y + layout.name_room + _drop(content, layout, part)
        for kind, path in _squares(content, layout, part, layout.x(place), top):
            shapes[kind] = shapes.get(kind, "") + path
        if part.used is not None:
            pitch = layout.side / content.H
            used += (f"M{svg.number(layout.x(place) + part.used.start * pitch)} {svg.number(top + pitch + 4)}"
                     f"h{svg.number((part.used.stop - part.used.start) * pitch - pitch / 6)}")
    return Row(name, False, tuple(sorted(shapes.items())), used)


def _drop(content: Content, layout: Layout, part: Part) -> float:
    """How far down a thing begins, so that one row of numbers stands at half the height of a matrix."""
    pitch = layout.side / content.H
    return (layout.side - pitch * len(part.rows)) / 2


def _squares(content: Content, layout: Layout, part: Part, x: float, y: float) -> list[tuple[str, str]]:
    pitch = layout.side / content.H
    size = pitch * 5 / 6
    return [(kind, svg.squares(1, x + column * pitch, y + row * pitch, 1, size, pitch))
            for row, kinds in enumerate(part.rows) for column, kind in enumerate(kinds)]


def _signs(content: Content, layout: Layout, y: float, rank: int) -> list[Text]:
    """Signs between neighbours in a row, and a plus before what is added to the row above."""
    level = y + layout.side / 2 + 5
    between = [Text(layout.x(place + 1) - layout.gap / 2, level, sign) for place, sign in enumerate(content.signs) if sign]
    plus = [Text(layout.middle(place), y - ROW_GAP / 2 - layout.name_room + 5, "+") for place in content.sums if rank]
    return between + plus


def _sums(content: Content, layout: Layout, y: float) -> tuple[str, str, tuple[Text, ...]]:
    """Under each column that is added up: a rule, the sum, and what it costs."""
    pitch = layout.side / content.H
    rules = "".join(f"M{svg.number(layout.x(place) - 6)} {svg.number(y - 6)}h{svg.number(layout.side + 12)}"
                    for place in content.sums)
    sums = "".join(svg.squares(content.H, layout.x(place), y + 6, content.H, pitch * 5 / 6, pitch) for place in content.sums)
    notes = [Text(layout.middle(place), y + 42 + 18 * line, text, strong=line == 0)
             for place, lines in content.sums.items() for line, text in enumerate(lines)]
    return rules, sums, tuple(notes)
