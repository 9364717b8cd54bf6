"""The chart of the figure *volume*: what a step sends against the number of GPUs. Geometry only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.figures import svg
from app.figures.amounts import Amount, Setting, amount
from app.figures.numbers import Number
from app.figures.strategies import DATA, STRATEGIES, TENSOR, Strategy
from app.figures.volume_words import Case, scope_short
from app.theory import data_parallel, tensor_parallel

MOST_GPUS = 64
SAMPLES = frozenset({1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64})
CHARACTER = 6.9  # pixels of an average character at 13 to 14 px
LINE = 18


@dataclass(frozen=True)
class Layout:
    """One of the two drawings. `end_labels` stand right of the plot; without them they stand on the lines."""

    width: float
    height: float
    top: float
    bottom: float
    end_labels: bool
    notes: bool


WIDE = Layout(820, 350, 44, 306, end_labels=True, notes=True)
NARROW = Layout(350, 350, 44, 306, end_labels=False, notes=False)


@dataclass(frozen=True)
class Tick:
    at: float
    text: str
    strong: bool = False


@dataclass(frozen=True)
class Stroke:
    """A strategy's line: solid where a run can go, dotted where only the formula does, stops at single P that can run."""

    axis: str
    solid: str
    dotted: str
    stops: tuple[svg.Point, ...]


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
    strokes: tuple[Stroke, ...]
    spots: tuple[Spot, ...]
    labels: tuple[Label, ...]


@dataclass(frozen=True)
class Line:
    """One strategy's amounts at the sampled world sizes."""

    strategy: Strategy
    amounts: tuple[Amount, ...]


@dataclass(frozen=True)
class Plane:
    """The plot: where a world size and a number of elements lie."""

    layout: Layout
    x: svg.Doubling
    y: svg.Linear

    def at(self, P: float, elements: Number) -> svg.Point:
        return self.x(P), self.y(float(elements))


def last_world_size(P: int, setting: Setting) -> int:
    """Where the axis ends: at 64 where volumes have a limit, else at about twice the reader's P, so that lines that
    grow without end leave room for the others."""
    if setting.is_bounded:
        return MOST_GPUS
    return next(last for last in (8, 16, 32, 64) if last >= min(2 * P, MOST_GPUS))


def sample_world_sizes(setting: Setting, last: int) -> tuple[int, ...]:
    """World sizes at which lines are computed: close together where they bend, and every one where something changes."""
    divisors = {P for P in range(1, last + 1) if setting.H % P == 0}
    return tuple(sorted(P for P in SAMPLES | divisors | {setting.L, setting.H, last} if P in range(1, last + 1)))


@lru_cache(maxsize=128)
def lines(setting: Setting, last: int) -> tuple[Line, ...]:
    """All three lines. They do not depend on the reader's P, so a moved P slider finds them here."""
    sizes = sample_world_sizes(setting, last)
    return tuple(Line(strategy, tuple(amount(strategy, P, setting) for P in sizes)) for strategy in STRATEGIES)


def chart(case: Case, layout: Layout) -> Chart:
    """The chart at the reader's values."""
    setting, measure = case.setting, case.measure
    last = last_world_size(case.P, setting)
    limit = data_parallel.limit(setting.L, setting.H) if setting.scope != "all" else None
    top = _top(lines(setting, last), limit, case)
    ticks = svg.nice_ticks(float(measure.of(1)) * top)
    names = _end_names(case, last)
    left = 18 + CHARACTER * max(len(plain_tick(tick)) for tick in ticks)
    right = layout.width - (34 + CHARACTER * max(len(name.text) for name in names) if layout.end_labels else 14)
    plane = Plane(layout, svg.Doubling(last, left, right), svg.Linear(0, top, layout.bottom, layout.top))
    tick_y = svg.Linear(0, float(measure.of(1)) * top, layout.bottom, layout.top)
    return _drawn(case, plane, names, tuple(Tick(tick_y(tick), plain_tick(tick)) for tick in ticks), limit)


def plain_tick(value: float) -> str:
    """A tick's number: 16, 2.5, 16,384."""
    return f"{int(value):,}" if value == int(value) else f"{value:,g}"


def _drawn(case: Case, plane: Plane, names: Sequence[EndName], y_ticks: tuple[Tick, ...], limit: int | None) -> Chart:
    strokes = _strokes(case.setting, plane)
    spots = _spots(case, plane)
    outlines = [_outline(line, plane, case.setting) for line in lines(case.setting, int(plane.x.last))]
    crossed = [*(points for pair in outlines for points in pair), _upright(case.P, plane)]
    labels = _spot_labels(case, plane, spots)
    labels += _end_labels(case, plane, names)
    limit_label = _limit_label(case, plane, limit, crossed, labels)
    labels += limit_label
    if plane.layout.notes:
        labels += _notes(case, plane, outlines, crossed, labels)
    return Chart(
        layout=plane.layout, left=plane.x.start, right=plane.x.end, x_ticks=_x_ticks(case.P, plane), y_ticks=y_ticks,
        unit=case.measure.name, here=plane.x(case.P), here_top=min(spot.y for spot in spots),
        limit=plane.y(limit) if limit is not None and limit_label else None, strokes=strokes, spots=spots, labels=tuple(labels),
    )


def _top(drawn: Sequence[Line], limit: int | None, case: Case) -> float:
    """The highest value in elements, made round in the reader's unit unless it is the limit itself."""
    highest = max(float(one.taught) for line in drawn for one in line.amounts)
    if limit is not None and limit >= highest:
        return float(limit)
    factor = float(case.measure.of(1))
    return svg.round_up(max(highest, 1) * factor) / factor


def _x_ticks(P: int, plane: Plane) -> tuple[Tick, ...]:
    """Doublings, and the reader's own P in their midst; a doubling too close to it gives way."""
    room = CHARACTER * (len(str(P)) + 2) / 2 + 8
    doublings = [Tick(plane.x(tick), str(tick)) for tick in plane.x.ticks() if tick != P]
    kept = [tick for tick in doublings if abs(tick.at - plane.x(P)) >= room]
    return (*kept, Tick(plane.x(P), str(P), strong=True))


def _strokes(setting: Setting, plane: Plane) -> tuple[Stroke, ...]:
    sizes = sample_world_sizes(setting, int(plane.x.last))
    return tuple(_stroke(line, sizes, plane) for line in lines(setting, int(plane.x.last)))


def _stroke(line: Line, sizes: Sequence[int], plane: Plane) -> Stroke:
    """Pieces between neighbours: solid where every P from one to the next can run.

    Tensor parallel above P = H runs on H GPUs: there the exact line leaves the formula's.
    """
    taught = svg.smooth([plane.at(P, one.taught) for P, one in zip(sizes, line.amounts, strict=True)])
    exact = svg.smooth([plane.at(P, one.shown) for P, one in zip(sizes, line.amounts, strict=True)])
    runs = [index for index in range(len(sizes) - 1) if _runs_through(line, sizes, index)]
    formula = [index for index in range(len(sizes) - 1)
               if index not in runs or line.amounts[index].differs or line.amounts[index + 1].differs]
    joined = {index for piece in runs for index in (piece, piece + 1)}
    alone = [index for index, one in enumerate(line.amounts) if one.exact is not None and index not in joined]
    stops = tuple(exact.points[index] for index in alone)
    return Stroke(line.strategy.axis, exact.path_of(runs), taught.path_of(formula), stops)


def _runs_through(line: Line, sizes: Sequence[int], index: int) -> bool:
    """Sampled sizes hold every divisor of H and H itself, so a gap between two that run hides no P that does."""
    before, after = line.amounts[index], line.amounts[index + 1]
    if before.exact is None or after.exact is None:
        return False
    neighbours = sizes[index + 1] == sizes[index] + 1
    return neighbours or line.strategy is not TENSOR or before.active_gpus == after.active_gpus


def _outline(line: Line, plane: Plane, setting: Setting) -> tuple[list[svg.Point], list[svg.Point]]:
    """The formula's line and the exact one as points, for labels to keep away from."""
    sizes = sample_world_sizes(setting, int(plane.x.last))
    pairs = list(zip(sizes, line.amounts, strict=True))
    return [plane.at(P, one.taught) for P, one in pairs], [plane.at(P, one.shown) for P, one in pairs]


def _upright(P: int, plane: Plane) -> list[svg.Point]:
    """The reader's own line; leaning a hair, because pieces run to the right."""
    return [(plane.x(P), plane.layout.top), (plane.x(P) + 0.01, plane.layout.bottom)]


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
    spots = [spot for spot in spots if spot.hollow or spot.value]  # at P = 1 all lines begin in one point, at 0
    named = not plane.layout.end_labels and _ends_are_crowded(case, plane)
    texts = [_spot_text(case, spot, named) for spot in spots]
    heights = svg.spread([spot.y + _label_offset(spot, spots) for spot in spots], LINE - 1, plane.layout.top - 8,
                         plane.layout.bottom - 6)
    x = plane.x(case.P)
    room = x - plane.x.start - 15
    sides = [(x - 11, "end") if CHARACTER * len(text) < room else (x + 11, "start") for text in texts]
    return [Label(spot.axis, at, y, (text,), anchor)
            for spot, text, y, (at, anchor) in zip(spots, texts, heights, sides, strict=True)]


def _label_offset(spot: Spot, spots: Sequence[Spot]) -> float:
    """Above the point; below it where the formula's own point of the same strategy is close above."""
    below_formula = any(other.hollow and other.axis == spot.axis and 0 < spot.y - other.y < 40 for other in spots)
    return 20 if below_formula and not spot.hollow else -9


def _spot_text(case: Case, spot: Spot, named: bool) -> str:
    value = case.measure.tenths(spot.value)
    active = case.amounts[TENSOR.name].active_gpus
    if spot.axis == TENSOR.axis and not spot.hollow and 1 < active < case.P:
        value = f"on {active} of {case.P}: {value}"
    return f"{spot.axis} {value}" if named else value


def _ends_are_crowded(case: Case, plane: Plane) -> bool:
    """Whether the reader's point is so far right that names at line ends would meet its values."""
    return plane.x(case.P) > plane.x.start + 0.55 * (plane.x.end - plane.x.start)


@dataclass(frozen=True)
class EndName:
    """What stands at a line's right end."""

    axis: str
    elements: Number
    text: str
    marked: bool


def _end_names(case: Case, last: int) -> list[EndName]:
    """A name for each line; a second one where the formula's line ends elsewhere."""
    names: list[EndName] = []
    for strategy in STRATEGIES:
        end = amount(strategy, last, case.setting)
        scope = scope_short(strategy, case.setting)
        if strategy is TENSOR and end.exact is not None and end.active_gpus < last:
            scope = f"{'in all on' if case.setting.is_total(strategy) else 'on each of'} {end.active_gpus}"
        text = f"{strategy.axis} {case.measure.plain(end.shown)} {scope}"
        names.append(EndName(strategy.axis, end.shown, text, True))
        if end.differs and end.exact is not None:
            names.append(EndName(strategy.axis, end.taught, f"formula {case.measure.plain(end.taught)}", False))
    return names


def _end_labels(case: Case, plane: Plane, names: Sequence[EndName]) -> list[Label]:
    layout = plane.layout
    if layout.end_labels:
        heights = svg.spread([plane.y(float(name.elements)) + 4 for name in names], LINE, layout.top, layout.bottom + 4)
        return [Label(name.axis, plane.x.end + 12, y, (name.text,), "start", name.marked)
                for name, y in zip(names, heights, strict=True)]
    if _ends_are_crowded(case, plane):
        return []
    short = [" ".join(name.text.split(" ")[:2]) for name in names]
    heights = svg.spread([plane.y(float(name.elements)) + (20 if name.axis == DATA.axis else -9) for name in names], LINE,
                         layout.top + 20, layout.bottom - 6)
    return [Label(name.axis, plane.x.end, y, (text,), "end") for name, text, y in zip(names, short, heights, strict=True)]


def _limit_label(case: Case, plane: Plane, limit: int | None, outlines: Sequence[Sequence[svg.Point]],
                 taken: Sequence[Label]) -> list[Label]:
    """The limit's sentence above its line, or its bare number, at the first place that no line crosses."""
    if limit is None:
        return []
    short = f"2 × params = {case.measure.plain(limit)}"
    texts = [(f"{short}: the batch cut comes near it and never gets there",)] if plane.layout.notes else []
    places = [(fraction, plane.y(limit) - 8) for fraction in (0.1, 0.02, 0.3, 0.5, 0.7)]
    return _placed([*texts, (short,)], plane, places, outlines, taken)


def _notes(case: Case, plane: Plane, outlines: Sequence[tuple[list[svg.Point], list[svg.Point]]],
           crossed: Sequence[Sequence[svg.Point]], taken: Sequence[Label]) -> list[Label]:
    """At most two remarks on why a line does what it does, each near its line, where there is room."""
    setting, last = case.setting, int(plane.x.last)
    notes: list[Label] = []
    if tensor_parallel.active_gpus(last, setting.H) < last:
        text = ("Dotted: the formula goes on, a run cannot.", f"{setting.H} columns keep no more than {setting.H} GPUs busy.")
        notes += _placed([text], plane, _places_along(outlines[1][1], plane, len(text)), crossed, [*taken, *notes])
    elif setting.H > 2:
        text = (f"Dots: the P that divide {setting.H}. Between them", "only the formula goes on.")
        notes += _placed([text], plane, _places_along(outlines[1][0], plane, len(text)), crossed, [*taken, *notes])
    if setting.L > 1 and not setting.equal_batches:
        remark = ("GPUs beyond the number of layers add no boundary.",)
        notes += _placed([remark], plane, _places_along(outlines[2][1], plane, 1), crossed, [*taken, *notes])
    return notes


def _places_along(points: Sequence[svg.Point], plane: Plane, num_lines: int) -> list[tuple[float, float]]:
    """Below and above a line, from the middle of the plot on: (share of the plot's width, first baseline)."""
    places: list[tuple[float, float]] = []
    for fraction in (0.43, 0.5, 0.36, 0.25):
        x = plane.x.start + fraction * (plane.x.end - plane.x.start)
        below = max(y for left, y in points if left >= x - 40)
        above = min(y for left, y in points if left >= x - 40)
        places += [(fraction, below + 20), (fraction, above - 12 - LINE * (num_lines - 1))]
    return places


def _placed(texts: Sequence[tuple[str, ...]], plane: Plane, places: Sequence[tuple[float, float]],
            outlines: Sequence[Sequence[svg.Point]], taken: Sequence[Label]) -> list[Label]:
    """The text at the first place where it covers no line, no other text and not the reader's own line; else nowhere."""
    boxes = [_box(label) for label in taken]
    for text in texts:
        for fraction, y in places:
            x = plane.x.start + fraction * (plane.x.end - plane.x.start)
            label = Label("", x, y, text, "start")
            box = _box(label)
            inside = box.right <= plane.x.end + 4 and plane.layout.top - 30 <= box.top and box.bottom <= plane.layout.bottom - 2
            free = all(box.clear_of(points) for points in outlines) and not any(box.overlaps(other) for other in boxes)
            if inside and free:
                return [label]
    return []


def _box(label: Label) -> svg.Box:
    width = CHARACTER * max(len(line) for line in label.lines)
    left = label.x if label.anchor == "start" else label.x - width
    return svg.Box(left, label.y - 13, left + width, label.y + 4 + LINE * (len(label.lines) - 1))

