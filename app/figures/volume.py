"""The figure *volume*: what one training step sends under each strategy, at the reader's own values."""

from __future__ import annotations

from dataclasses import dataclass

from app.figures.amounts import Amount, Setting, amount
from app.figures.inputs import Choice, Field, Inputs, Option
from app.figures.numbers import Number, counted
from app.figures.strategies import DATA, PIPELINE, STRATEGIES, STRATEGY_CHOICE, TENSOR, Strategy
from app.figures.volume_chart import Chart, chart
from app.figures.volume_lines import NARROW, WIDE
from app.figures.volume_ranks import RankPanel, rank_panel, sent_by_rank
from app.figures.volume_words import Case, Finding, Measure, difference, finding, scope_words
from app.theory import data_parallel

FIELDS = (
    Field("P", "GPUs", "GPUs", 1, 64, 4),
    Field("L", "layers", "layers", 1, 16, 2),
    Field("H", "width", "numbers", 2, 64, 4),
    Field("T", "tokens", "tokens", 1, 16, 1),
    Choice("scope", "Count", (Option("stated", "as stated"), Option("gpu", "one GPU"), Option("all", "all GPUs"))),
    Choice("unit", "In", (Option("elements", "elements"), Option("fp32", "bytes, fp32"))),
    Choice("batch", "Batches", (Option("taught", "as taught"), Option("equal", "equal"))),
    STRATEGY_CHOICE,
)
TABLE_SIZES = (1, 2, 4, 8, 16, 32, 64)
MOST_SEGMENTS = 16
GAP = 0.55  # percent of the bar's width between the parts of a total


@dataclass(frozen=True)
class Segment:
    """Part of a bar, in percent of the drawing's width."""

    x: float
    width: float


@dataclass(frozen=True)
class Limit:
    """What a bar comes near to: a dashed line from the bar to a tick, and its label."""

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Bar:
    """`solid` can run, cut where a total's GPUs divide; `open` is what only the formula reaches."""

    solid: tuple[Segment, ...]
    open: Segment | None
    limit: Limit | None


@dataclass(frozen=True)
class Row:
    """One strategy: its number as the lesson's formula gives it, whose traffic it is, and what a run does otherwise."""

    strategy: Strategy
    chosen: bool
    number: str
    bar: Bar
    unit: str
    scope: str
    detail: str
    difference: str
    why: str


@dataclass(frozen=True)
class TableRow:
    """The three numbers at one world size, in words."""

    P: int
    here: bool
    cells: tuple[str, ...]


@dataclass(frozen=True)
class VolumeView:
    rows: tuple[Row, ...]
    finding: Finding
    wide: Chart
    narrow: Chart
    chart_title: str
    number_size: str
    ranks: RankPanel
    table_heads: tuple[str, ...]
    table: tuple[TableRow, ...]
    status: str


def compute(inputs: Inputs) -> VolumeView:
    """Everything the figure shows at these inputs. All numbers come from app.theory."""
    setting = Setting(inputs.number("L"), inputs.number("H"), inputs.number("T"), inputs.choice("scope"),
                      inputs.choice("batch") == "equal")
    case = case_at(inputs.number("P"), setting, Measure(inputs.choice("unit")))
    chosen = next(strategy for strategy in STRATEGIES if strategy.name == inputs.choice("strategy"))
    rows = _rows(case, chosen)
    return VolumeView(
        rows=rows, finding=finding(case), wide=chart(case, WIDE), narrow=chart(case, NARROW), chart_title=_chart_title(case),
        number_size=_number_size(max(len(row.number) for row in rows)), ranks=rank_panel(chosen, case),
        table_heads=tuple(f"{strategy.title}, {scope_words(strategy, setting)}" for strategy in STRATEGIES),
        table=_table(case), status=_status(case, rows),
    )


def case_at(P: int, setting: Setting, measure: Measure) -> Case:
    """All three amounts on P GPUs."""
    return Case(P, setting, measure, {strategy.name: amount(strategy, P, setting) for strategy in STRATEGIES})


def _rows(case: Case, chosen: Strategy) -> tuple[Row, ...]:
    scale = _bar_scale(case)
    rows = []
    for strategy in STRATEGIES:
        one = case.amounts[strategy.name]
        differs, why = difference(strategy, case)
        rows.append(Row(
            strategy=strategy, chosen=strategy is chosen, number=case.measure.tenths(one.taught),
            bar=_bar(strategy, case, scale),
            unit=case.measure.name, scope=scope_words(strategy, case.setting), detail=_detail(strategy, case, one),
            difference=differs, why=why,
        ))
    return tuple(rows)


def _number_size(characters: int) -> str:
    """The class that sets all three numbers in one size, the largest in which the longest has room."""
    return "" if characters <= 5 else "long" if characters <= 7 else "longest"


def _detail(strategy: Strategy, case: Case, one: Amount) -> str:
    """What a reader needs to read the number rightly, after its scope."""
    parts = [_who_sends(strategy, case, one), _fed(strategy, case)]
    return "".join(part for part in parts if part)


def _who_sends(strategy: Strategy, case: Case, one: Amount) -> str:
    by_rank = sent_by_rank(strategy, case)
    if by_rank is None or not any(by_rank):
        return ""
    if not case.setting.is_total(strategy):
        uneven = strategy is not PIPELINE and len(set(by_rank[:one.active_gpus])) > 1
        return ", on average" if uneven else ""
    if strategy is not PIPELINE:
        return ""
    sends = [case.measure.plain(elements) for elements in by_rank]
    if one.active_gpus == 2:
        return f": {sends[0]} by GPU 0, {sends[1]} by GPU 1"
    inner = "the one" if one.active_gpus == 3 else f"each of the {one.active_gpus - 2}"
    return f": {sends[0]} by each end, {sends[1]} by {inner} between"


def _fed(strategy: Strategy, case: Case) -> str:
    """How equal batches are fed to this strategy."""
    if not case.setting.equal_batches:
        return ""
    P, T = case.P, case.setting.T
    if strategy is DATA:
        return f"; {counted(T, 'token')} for each of {counted(P, 'replica')}"
    if strategy is TENSOR:
        return f"; {counted(case.setting.tensor_tokens(P), 'token')} in one micro-batch"
    return f"; {counted(case.setting.micro_batches(P), 'micro-batch', 'micro-batches')} of {counted(T, 'token')}"


@dataclass(frozen=True)
class BarScale:
    """Percent of the width for each element; `limit` is drawn where it is given."""

    percent_per_element: float
    limit: Number | None


def _bar_scale(case: Case) -> BarScale:
    """The longest bar or the limit ends where a label still fits behind it on a phone (350 px, 7 px a character)."""
    limit = data_parallel.limit(case.setting.L, case.setting.H) if case.setting.scope != "all" else None
    longest = max([float(one.taught) for one in case.amounts.values()] + [float(limit or 0), 1.0])
    label = 0 if limit is None else 16 + 7 * len(_limit_text(case, limit))
    return BarScale(min(84.0, 100 * (350 - label) / 350) / longest, limit)


def _limit_text(case: Case, limit: Number) -> str:
    return f"limit {case.measure.plain(limit)}"


def _bar(strategy: Strategy, case: Case, scale: BarScale) -> Bar:
    one = case.amounts[strategy.name]
    taught = float(one.taught) * scale.percent_per_element
    exact = float(one.exact or 0) * scale.percent_per_element
    limit = None
    if strategy is DATA and scale.limit is not None:
        limit = Limit(exact, float(scale.limit) * scale.percent_per_element, _limit_text(case, scale.limit))
    beyond = Segment(exact, taught - exact) if taught > exact + 0.01 else None
    return Bar(_segments(strategy, case, exact), beyond, limit)


def _segments(strategy: Strategy, case: Case, width: float) -> tuple[Segment, ...]:
    """A total is cut where its GPUs divide, as long as the parts can be told apart."""
    by_rank = sent_by_rank(strategy, case) if case.setting.is_total(strategy) else None
    senders = [float(elements) for elements in by_rank or () if elements]
    if width == 0:
        return ()
    if not 1 < len(senders) <= MOST_SEGMENTS or width / len(senders) < 3 * GAP:
        return (Segment(0, width),)
    segments: list[Segment] = []
    start = 0.0
    for elements in senders:
        share = elements / sum(senders) * width
        segments.append(Segment(start, share - (GAP if len(segments) < len(senders) - 1 else 0)))
        start += share
    return tuple(segments)


def _table(case: Case) -> tuple[TableRow, ...]:
    sizes = sorted({*TABLE_SIZES, case.P})
    return tuple(TableRow(P, P == case.P, _cells(case_at(P, case.setting, case.measure))) for P in sizes)


def _cells(case: Case) -> tuple[str, ...]:
    return tuple(_cell(strategy, case) for strategy in STRATEGIES)


def _cell(strategy: Strategy, case: Case) -> str:
    one = case.amounts[strategy.name]
    number = case.measure.tenths(one.taught)
    if not one.differs:
        return number
    return f"{number}; {difference(strategy, case)[0]}"


def _chart_title(case: Case) -> str:
    return (f"{case.measure.name.capitalize()} sent in one training step against the number of GPUs, "
            f"with L = {case.setting.L}, H = {case.setting.H}, T = {case.setting.T}; your P is {case.P}.")


def _status(case: Case, rows: tuple[Row, ...]) -> str:
    numbers = "; ".join(
        f"{row.strategy.title} {row.number} {row.scope}" + (f", {row.difference}" if row.difference else "") for row in rows
    )
    return f"P = {case.P}, in {case.measure.name}: {numbers}."
