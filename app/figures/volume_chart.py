"""The chart of the figure *volume*: what a step sends against the number of GPUs, with the reader's own P marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from app.figures import svg
from app.figures.numbers import Number
from app.figures.strategies import DATA, STRATEGIES, TENSOR
from app.figures.volume_lines import CHARACTER, EndName, Frame, Layout, Line, Plane, Tick, frame, last_world_size
from app.figures.volume_words import Case
from app.theory import tensor_parallel

LINE = 18  # pixels from one line of text to the next
OFFSETS = (-9, -5, 16, 20, -23, -27, 34, -41, -45, -59)  # from a point or a line's end to the baseline of its text
NAME_ROOM = 110  # what names take on the lines' ends where they have no room beside the plot
Places = Sequence[tuple[float, float]]  # (share of the plot's width, first baseline)


@dataclass(frozen=True)
class Spot:
    """The reader's own point on a line; hollow where only the formula reaches it. `value` is the number it stands for."""

    axis: str
    x: float
    y: float
    hollow: bool
    value: Number


@dataclass(frozen=True)
class Label:
    """Text at a place; `marked` puts the strategy's mark in front of it."""

    axis: str
    x: float
    y: float
    lines: tuple[str, ...]
    anchor: str
    marked: bool = False

    @cached_property
    def box(self) -> svg.Box:
        width = CHARACTER * max(len(line) for line in self.lines)
        left = self.x if self.anchor == "start" else self.x - width
        return svg.Box(left, self.y - 13, left + width, self.y + 4 + LINE * (len(self.lines) - 1))

    @cached_property
    def ink(self) -> svg.Box:
        """What a single line of figures and short words covers, and a pixel around it."""
        return svg.Box(self.box.left, self.y - 12, self.box.right, self.y + 2)


@dataclass(frozen=True)
class Chart:
    layout: Layout
    left: float
    right: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    unit: str
    here: float
    here_top: float
    limit: float | None
    lines: tuple[Line, ...]
    spots: tuple[Spot, ...]
    labels: tuple[Label, ...]


def chart(case: Case, layout: Layout) -> Chart:
    """The chart at the reader's values."""
    drawn = frame(case.setting, case.measure, last_world_size(case.P, case.setting), layout)
    plane = drawn.plane
    spots = _spots(case, plane)
    labels = _spot_labels(case, drawn, spots)
    board = _Board(plane, (*drawn.crossed, _upright(case.P, plane)), labels + _end_labels(case, drawn, labels))
    limit_is_named = _name_limit(case, drawn, board)
    if layout.notes:
        _add_notes(case, drawn, board)
    return Chart(
        layout=layout, left=plane.x.start, right=plane.x.end, x_ticks=_x_ticks(case.P, plane), y_ticks=drawn.y_ticks,
        unit=case.measure.name, here=plane.x(case.P), here_top=min(spot.y for spot in spots),
        limit=plane.y(drawn.limit) if drawn.limit is not None and limit_is_named else None,
        lines=drawn.lines, spots=spots, labels=tuple(board.labels),
    )


@dataclass
class _Board:
    """The plot while texts are put on it: what they may not cover, and those that are there."""

    plane: Plane
    crossed: tuple[tuple[svg.Point, ...], ...]
    labels: list[Label]

    def place(self, texts: Sequence[tuple[str, ...]], places: Places) -> bool:
        """Puts the first text that fits at the first place where it covers no line and no other text; else none."""
        taken = [label.box for label in self.labels]
        for lines in texts:
            for fraction, y in places:
                label = Label("", self.plane.across(fraction), y, lines, "start")
                if self._is_inside(label.box) and self._is_free(label.box, taken):
                    self.labels.append(label)
                    return True
        return False

    def _is_inside(self, box: svg.Box) -> bool:
        layout = self.plane.layout
        return box.right <= self.plane.x.end + 4 and layout.top - 30 <= box.top and box.bottom <= layout.bottom - 2

    def _is_free(self, box: svg.Box, taken: Sequence[svg.Box]) -> bool:
        return not any(box.overlaps(other) for other in taken) and all(box.clear_of(points) for points in self.crossed)


def _x_ticks(P: int, plane: Plane) -> tuple[Tick, ...]:
    """Doublings, and the reader's own P in their midst; a doubling too close to it gives way."""
    room = CHARACTER * (len(str(P)) + 2) / 2 + 8
    doublings = [Tick(plane.x(tick), str(tick)) for tick in plane.x.ticks() if tick != P]
    kept = [tick for tick in doublings if abs(tick.at - plane.x(P)) >= room]
    return (*kept, Tick(plane.x(P), str(P), strong=True))


def _upright(P: int, plane: Plane) -> tuple[svg.Point, ...]:
    """The reader's own line; leaning a hair, because pieces run to the right."""
    return (plane.x(P), plane.layout.top), (plane.x(P) + 0.01, plane.layout.bottom)


def _spots(case: Case, plane: Plane) -> tuple[Spot, ...]:
    spots: list[Spot] = []
    for strategy in STRATEGIES:
        one = case.amounts[strategy.name]
        if one.differs:
            spots.append(Spot(strategy.axis, *plane.at(case.P, one.taught), hollow=True, value=one.taught))
        if one.exact is not None:
            spots.append(Spot(strategy.axis, *plane.at(case.P, one.exact), hollow=False, value=one.exact))
    return tuple(spots)


def _clear_places(choices: Iterable[Iterable[Label]], drawn: Frame, taken: Sequence[Label]) -> list[Label] | None:
    """For each label one of its places, in order of preference: off all lines and other labels, else off the labels.

    None where even that cannot be had for all.
    """
    placed: list[Label] = []
    for places in choices:
        others = [label.box for label in (*taken, *placed)]
        chosen = None
        for label in places:
            if any(_covers(label.box, other) for other in others):
                continue
            if all(label.ink.clear_of(points) for points in drawn.crossed):
                chosen = label
                break
            chosen = chosen or label
        if chosen is None:
            return None
        placed.append(chosen)
    return placed


def _covers(box: svg.Box, other: svg.Box) -> bool:
    """By more than a hair: boxes are a little higher than their texts."""
    return box.overlaps(other) and min(box.bottom, other.bottom) - max(box.top, other.top) > 4


def _spot_labels(case: Case, drawn: Frame, spots: Sequence[Spot]) -> list[Label]:
    """Each point's value, left of the reader's line where there is room, else right of it; the lowest has the least room."""
    plane = drawn.plane
    valued = [spot for spot in spots if spot.hollow or spot.value]  # at P = 1 all lines begin in one point, at 0
    offsets = {spot: _label_offset(spot, spots) for spot in valued}
    from_below = sorted(valued, key=lambda one: one.y, reverse=True)
    placed = _clear_places((_spot_choices(case, plane, spot, offsets[spot]) for spot in from_below), drawn, ())
    if placed is not None:
        return placed
    heights = svg.spread([spot.y + offsets[spot] for spot in valued], LINE - 1, plane.layout.top - 8, plane.layout.bottom - 6)
    return [_spot_places(case, plane, spot, y)[0] for spot, y in zip(valued, heights, strict=True)]


def _spot_choices(case: Case, plane: Plane, spot: Spot, wanted: float) -> Iterator[Label]:
    """The places of a point's value, the nearest to the wanted height first."""
    for offset in sorted(OFFSETS, key=lambda one: abs(one - wanted)):
        yield from (label for label in _spot_places(case, plane, spot, spot.y + offset) if _is_beside_the_plot(label, plane))


def _is_beside_the_plot(label: Label, plane: Plane) -> bool:
    return plane.layout.top - 8 <= label.y <= plane.layout.bottom - 3


def _spot_places(case: Case, plane: Plane, spot: Spot, y: float) -> list[Label]:
    """At one height: the longest text that has room, on either side where it has."""
    names = 0 if plane.layout.end_labels or _ends_are_crowded(case, plane) else NAME_ROOM
    rooms = ((spot.x - 11, "end", spot.x - plane.x.start - 15), (spot.x + 11, "start", plane.x.end - spot.x - 7 - names))
    texts = _spot_texts(case, plane, spot)
    fitting = [Label(spot.axis, x, y, (text,), anchor)
               for text in texts for x, anchor, room in rooms if CHARACTER * len(text) < room]
    return fitting or [Label(spot.axis, spot.x + 11, y, (texts[-1],), "start")]


def _label_offset(spot: Spot, spots: Sequence[Spot]) -> float:
    """Above the point; below it where the formula's own point of the same strategy is close above."""
    below_formula = any(other.hollow and other.axis == spot.axis and 0 < spot.y - other.y < 40 for other in spots)
    return 20 if below_formula and not spot.hollow else -9


def _spot_texts(case: Case, plane: Plane, spot: Spot) -> list[str]:
    """The point's value: first with all that may stand before it, then with less."""
    value = case.measure.tenths(spot.value)
    active = case.amounts[TENSOR.name].active_gpus
    texts = [value]
    if spot.axis == TENSOR.axis and not spot.hollow and 1 < active < case.P:
        texts.insert(0, f"on {active} of {case.P}: {value}")
    if not plane.layout.end_labels and _ends_are_crowded(case, plane):
        texts = [f"{spot.axis} {text}" for text in texts] + [value]
    return texts


def _ends_are_crowded(case: Case, plane: Plane) -> bool:
    """Whether the reader's point is so far right that names at line ends would meet its values."""
    return plane.x(case.P) > plane.across(0.55)


def _end_labels(case: Case, drawn: Frame, taken: Sequence[Label]) -> list[Label]:
    """Each line's name, value and scope: right of the plot, or short and on the line's end where there is no room."""
    plane, layout = drawn.plane, drawn.plane.layout
    ends = [plane.y(float(name.elements)) for name in drawn.names]
    if layout.end_labels:
        heights = svg.spread([y + 4 for y in ends], LINE, layout.top, layout.bottom + 4)
        return [Label(name.axis, plane.x.end + 12, y, (name.text,), "start", name.marked)
                for name, y in zip(drawn.names, heights, strict=True)]
    if _ends_are_crowded(case, plane):
        return []
    named = [(name, y, 20 if name.axis == DATA.axis else -9) for name, y in zip(drawn.names, ends, strict=True)]
    choices = [[label for offset in sorted(OFFSETS, key=lambda one: abs(one - preferred))
                if _is_beside_the_plot(label := _short_name(name, plane, y + offset), plane)]
               for name, y, preferred in sorted(named, key=lambda one: one[1], reverse=True)]
    placed = _clear_places(choices, drawn, taken)
    if placed is not None:
        return placed
    heights = svg.spread([y + preferred for _, y, preferred in named], LINE, layout.top + 20, layout.bottom - 6)
    return [_short_name(name, plane, y) for (name, *_), y in zip(named, heights, strict=True)]


def _short_name(name: EndName, plane: Plane, y: float) -> Label:
    return Label(name.axis, plane.x.end, y, (" ".join(name.text.split(" ")[:2]),), "end")


def _name_limit(case: Case, drawn: Frame, board: _Board) -> bool:
    """The limit's sentence above its line, or its bare number where that has no room."""
    if drawn.limit is None:
        return False
    short = f"2 × params = {case.measure.plain(drawn.limit)}"
    texts = [(f"{short}: the batch cut comes near it and never gets there",)] if board.plane.layout.notes else []
    y = board.plane.y(drawn.limit) - 8
    return board.place([*texts, (short,)], [(fraction, y) for fraction in (0.1, 0.02, 0.3, 0.5, 0.7)])


def _add_notes(case: Case, drawn: Frame, board: _Board) -> None:
    """At most two remarks on why a line does what it does, each near its line, where there is room."""
    setting = case.setting
    _, tensor, pipeline = drawn.lines
    if tensor_parallel.active_gpus(drawn.last, setting.H) < drawn.last:
        text = ("Dotted: the formula goes on, a run cannot.", f"{setting.H} rows keep no more than {setting.H} GPUs busy.")
        board.place([text], _places_along(tensor.exact, board.plane, len(text)))
    elif tensor.stops:
        text = (f"Dots: the P that divide {setting.H}. Between them", "only the formula goes on.")
        board.place([text], _places_along(tensor.taught, board.plane, len(text)))
    if setting.L > 1 and not setting.equal_batches:
        board.place([("GPUs beyond the number of layers add no boundary.",)], _places_along(pipeline.exact, board.plane, 1))


def _places_along(points: Sequence[svg.Point], plane: Plane, num_lines: int) -> Places:
    """Below and above a line, from the middle of the plot on."""
    places: list[tuple[float, float]] = []
    for fraction in (0.43, 0.5, 0.36, 0.25):
        heights = [y for x, y in points if x >= plane.across(fraction) - 40]
        places += [(fraction, max(heights) + 20), (fraction, min(heights) - 12 - LINE * (num_lines - 1))]
    return places
