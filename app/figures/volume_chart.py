"""The chart of the figure *volume*: what a step sends against the number of GPUs, with the reader's own P marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.figures import svg
from app.figures.numbers import Number
from app.figures.strategies import DATA, STRATEGIES, TENSOR
from app.figures.volume_lines import CHARACTER, Frame, Layout, Line, Plane, Tick, frame, last_world_size
from app.figures.volume_words import Case
from app.theory import tensor_parallel

LINE = 18  # pixels from one line of text to the next
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

    @property
    def box(self) -> svg.Box:
        width = CHARACTER * max(len(line) for line in self.lines)
        left = self.x if self.anchor == "start" else self.x - width
        return svg.Box(left, self.y - 13, left + width, self.y + 4 + LINE * (len(self.lines) - 1))


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
    board = _Board(plane, (*drawn.crossed, _upright(case.P, plane)), _spot_labels(case, plane, spots))
    board.labels += _end_labels(case, drawn)
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


def _spot_labels(case: Case, plane: Plane, spots: Sequence[Spot]) -> list[Label]:
    """Each point's value, left of the reader's line where there is room, else right of it."""
    valued = [spot for spot in spots if spot.hollow or spot.value]  # at P = 1 all lines begin in one point, at 0
    wanted = [spot.y + _label_offset(spot, spots) for spot in valued]
    heights = svg.spread(wanted, LINE - 1, plane.layout.top - 8, plane.layout.bottom - 6)
    return [_spot_label(case, plane, spot, y) for spot, y in zip(valued, heights, strict=True)]


def _spot_label(case: Case, plane: Plane, spot: Spot, y: float) -> Label:
    """The longest text that has room beside the point."""
    names = 0 if plane.layout.end_labels or _ends_are_crowded(case, plane) else NAME_ROOM
    rooms = ((spot.x - 11, "end", spot.x - plane.x.start - 15), (spot.x + 11, "start", plane.x.end - spot.x - 7 - names))
    texts = _spot_texts(case, plane, spot)
    fitting = (Label(spot.axis, x, y, (text,), anchor)
               for text in texts for x, anchor, room in rooms if CHARACTER * len(text) < room)
    return next(fitting, Label(spot.axis, spot.x + 11, y, (texts[-1],), "start"))


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


def _end_labels(case: Case, drawn: Frame) -> list[Label]:
    """Each line's name, value and scope: right of the plot, or short and on the line's end where there is no room."""
    plane, layout = drawn.plane, drawn.plane.layout
    ends = [plane.y(float(name.elements)) for name in drawn.names]
    if layout.end_labels:
        heights = svg.spread([y + 4 for y in ends], LINE, layout.top, layout.bottom + 4)
        return [Label(name.axis, plane.x.end + 12, y, (name.text,), "start", name.marked)
                for name, y in zip(drawn.names, heights, strict=True)]
    if _ends_are_crowded(case, plane):
        return []
    wanted = [y + (20 if name.axis == DATA.axis else -9) for name, y in zip(drawn.names, ends, strict=True)]
    heights = svg.spread(wanted, LINE, layout.top + 20, layout.bottom - 6)
    return [Label(name.axis, plane.x.end, y, (" ".join(name.text.split(" ")[:2]),), "end")
            for name, y in zip(drawn.names, heights, strict=True)]


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
