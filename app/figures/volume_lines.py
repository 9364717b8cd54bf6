"""The lines of the figure *volume*: all that its chart shows whatever the reader's own P is. Geometry only, kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.figures import svg
from app.figures.amounts import Amount, Setting, amount
from app.figures.numbers import Number
from app.figures.strategies import STRATEGIES, TENSOR, Strategy
from app.figures.volume_ranks import prediction
from app.figures.volume_words import Measure, scope_short
from app.theory import data_parallel

MOST_GPUS = 64
SAMPLES = frozenset({1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64})
CHARACTER = 6.9  # pixels of an average character at 13 to 14 px
KEPT_FRAMES = 128


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
class Line:
    """A strategy's line: solid where a run can go, dotted where only the formula does, stops at single P that can run.

    `taught` and `exact` are the points the two go through, for labels to keep away from.
    """

    axis: str
    solid: str
    dotted: str
    stops: tuple[svg.Point, ...]
    taught: tuple[svg.Point, ...]
    exact: tuple[svg.Point, ...]


@dataclass(frozen=True)
class EndName:
    """What stands at a line's right end."""

    axis: str
    elements: Number
    text: str
    marked: bool


@dataclass(frozen=True)
class Plane:
    """The plot: where a world size and a number of elements lie."""

    layout: Layout
    x: svg.Doubling
    y: svg.Linear

    def at(self, P: int, elements: Number) -> svg.Point:
        return self.x(P), self.y(float(elements))

    def across(self, fraction: float) -> float:
        """A share of the plot's width as a position."""
        return self.x.start + fraction * (self.x.end - self.x.start)


@dataclass(frozen=True)
class Frame:
    """Axes, lines and what stands at their ends. `crossed` holds every line once, as points."""

    plane: Plane
    last: int
    y_ticks: tuple[Tick, ...]
    limit: int | None
    lines: tuple[Line, ...]
    names: tuple[EndName, ...]
    crossed: tuple[tuple[svg.Point, ...], ...]


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


@lru_cache(maxsize=KEPT_FRAMES)
def _amounts(setting: Setting, last: int) -> tuple[tuple[Amount, ...], ...]:
    """For each strategy its amounts at the sampled world sizes."""
    sizes = sample_world_sizes(setting, last)
    return tuple(tuple(amount(strategy, P, setting) for P in sizes) for strategy in STRATEGIES)


@lru_cache(maxsize=KEPT_FRAMES)
def frame(setting: Setting, measure: Measure, last: int, layout: Layout) -> Frame:
    """The chart without the reader's P, so that a moved P slider finds it here."""
    amounts = _amounts(setting, last)
    limit = data_parallel.limit(setting.L, setting.H) if setting.scope != "all" else None
    top = _top(amounts, limit, measure)
    shown_top = float(measure.of(1)) * top
    ticks = svg.nice_ticks(shown_top)
    names = _end_names(setting, measure, last)
    left = 18 + CHARACTER * max(len(plain_tick(tick)) for tick in ticks)
    right = layout.width - (34 + CHARACTER * max(len(name.text) for name in names) if layout.end_labels else 14)
    plane = Plane(layout, svg.Doubling(last, left, right), svg.Linear(0, top, layout.bottom, layout.top))
    tick_y = svg.Linear(0, shown_top, layout.bottom, layout.top)
    sizes = sample_world_sizes(setting, last)
    lines = tuple(_line(strategy, sizes, each, plane) for strategy, each in zip(STRATEGIES, amounts, strict=True))
    return Frame(plane, last, tuple(Tick(tick_y(tick), plain_tick(tick)) for tick in ticks), limit, lines, names,
                 tuple(dict.fromkeys(points for line in lines for points in (line.taught, line.exact))))


def plain_tick(value: float) -> str:
    """A tick's number: 16, 2.5, 16,384."""
    return f"{int(value):,}" if value == int(value) else f"{value:,g}"


def _top(amounts: Sequence[Sequence[Amount]], limit: int | None, measure: Measure) -> float:
    """The highest value in elements, made round in the reader's unit unless it is the limit itself."""
    highest = max(float(one.taught) for each in amounts for one in each)
    if limit is not None and limit >= highest:
        return float(limit)
    factor = float(measure.of(1))
    return svg.round_up(max(highest, 1) * factor) / factor


def _line(strategy: Strategy, sizes: Sequence[int], amounts: Sequence[Amount], plane: Plane) -> Line:
    """Pieces between neighbours: solid where every P from one to the next can run.

    Tensor parallel above P = H runs on H GPUs: there the exact line leaves the formula's.
    """
    taught = svg.smooth([plane.at(P, one.taught) for P, one in zip(sizes, amounts, strict=True)])
    differs = [one.exact is not None and one.differs for one in amounts]
    exact = svg.smooth([plane.at(P, one.shown) for P, one in zip(sizes, amounts, strict=True)]) if any(differs) else taught
    pieces = range(len(sizes) - 1)
    runs = [piece for piece in pieces if _runs_through(strategy, sizes, amounts, piece)]
    formula = [piece for piece in pieces if piece not in runs or differs[piece] or differs[piece + 1]]
    joined = {index for piece in runs for index in (piece, piece + 1)}
    alone = [index for index, one in enumerate(amounts) if one.exact is not None and index not in joined]
    return Line(strategy.axis, exact.path_of(runs), taught.path_of(formula), tuple(exact.points[index] for index in alone),
                taught.points, exact.points)


def _runs_through(strategy: Strategy, sizes: Sequence[int], amounts: Sequence[Amount], piece: int) -> bool:
    """Sampled sizes hold every divisor of H and H itself, so a gap between two that run hides no P that does."""
    before, after = amounts[piece], amounts[piece + 1]
    if before.exact is None or after.exact is None:
        return False
    neighbours = sizes[piece + 1] == sizes[piece] + 1
    return neighbours or strategy is not TENSOR or before.active_gpus == after.active_gpus


def _spread(P: int, setting: Setting, end: Amount) -> str:
    """Whether the number is what each GPU sends: gloo's chunks may be of different lengths, and then it is their mean."""
    by_rank = prediction(TENSOR, P, setting).exact.by_rank
    return "on each of" if by_rank is not None and set(by_rank[:end.active_gpus]) == {end.exact} else "on average, on"


def _end_names(setting: Setting, measure: Measure, last: int) -> tuple[EndName, ...]:
    """A name for each line; a second one where the formula's line ends elsewhere."""
    names: list[EndName] = []
    for strategy in STRATEGIES:
        end = amount(strategy, last, setting)
        scope = scope_short(strategy, setting)
        if strategy is TENSOR and end.exact is not None and end.active_gpus < last:
            scope = f"{'in all on' if setting.is_total(strategy) else _spread(last, setting, end)} {end.active_gpus}"
        names.append(EndName(strategy.axis, end.shown, f"{strategy.axis} {measure.plain(end.shown)} {scope}", True))
        if end.differs and end.exact is not None:
            names.append(EndName(strategy.axis, end.taught, f"formula {measure.plain(end.taught)}", False))
    return tuple(names)
