"""The figure *tensor or data*: a gradient that stays as it is against activations that grow with the tokens."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from app.figures.inputs import Field, Inputs
from app.figures.numbers import Number, counted, plain, times
from app.figures.strategies import DATA, TENSOR
from app.figures.tensor_or_data_chart import NARROW, WIDE, Amounts, Chart, chart
from app.theory import Volume, data_parallel, predict, tensor_parallel

FIELDS = (
    Field("T", "tokens", "tokens", 1, 128, 1),
    Field("P", "GPUs", "GPUs", 2, 64, 4),
    Field("L", "layers", "layers", 2, 16, 2, step=2),
    Field("H", "width", "numbers", 2, 64, 4, step=2),
)
TABLE_TOKENS = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Way:
    """One of the three rows: its number, the length of its bar in percent, what it means, and what a run does otherwise."""

    name: str
    axis: str
    number: str
    percent: float
    text: str
    difference: str


@dataclass(frozen=True)
class TableRow:
    """The three numbers at one T."""

    T: int
    here: bool
    cells: tuple[str, ...]


@dataclass(frozen=True)
class TensorOrDataView:
    ways: tuple[Way, ...]
    finding: tuple[str, str, str]
    axis: str
    note: str
    wide: Chart
    narrow: Chart
    chart_title: str
    table: tuple[TableRow, ...]
    status: str


@dataclass(frozen=True)
class Case:
    """The reader's values. Amounts are those of the formulas, on all P GPUs."""

    P: int
    L: int
    H: int
    T: int

    @property
    def runs(self) -> bool:
        """Whether every one of P GPUs gets an equal part of each matrix."""
        return self.H % self.P == 0

    def data(self) -> Fraction:
        return data_parallel.volume(self.P, self.L, self.H)

    def each(self, T: int) -> Fraction:
        return tensor_parallel.taught_volume(self.P, self.L, self.H, T)

    def pair(self, T: int) -> Fraction:
        return tensor_parallel.megatron_volume(self.P, self.L, self.H, T)

    def as_run(self, strategy: str) -> Volume:
        return predict(strategy, P=self.P, L=self.L, H=self.H, T=self.T).exact


def compute(inputs: Inputs) -> TensorOrDataView:
    """Everything the figure shows at these inputs. All numbers come from app.theory."""
    case = Case(inputs.number("P"), inputs.number("L"), inputs.number("H"), inputs.number("T"))
    finding, axis = _finding(case)
    crossings = (tensor_parallel.break_even_tokens(case.H), tensor_parallel.megatron_break_even_tokens(case.H))
    amounts = _amounts(case)
    ways = _ways(case)
    return TensorOrDataView(
        ways=ways, finding=finding, axis=axis, note=_note(case),
        wide=chart(amounts, crossings, case.T, WIDE), narrow=chart(amounts, crossings, case.T, NARROW),
        chart_title=(f"Elements sent by each GPU in one step against the tokens of a micro-batch, with P = {case.P}, "
                     f"L = {case.L}, H = {case.H}. The lines cross data parallel’s at {plain(crossings[0])} and "
                     f"{crossings[1]} tokens; your T is {case.T}."),
        table=tuple(_table_row(case, T) for T in sorted({*TABLE_TOKENS, case.T})),
        status=f"T = {case.T}: " + "; ".join(_said(way) for way in ways) + ".",
    )


def _amounts(case: Case) -> tuple[Amounts, ...]:
    return (
        Amounts("data", DATA.axis, case.data(), 0, case.data(), True),
        Amounts("each layer", TENSOR.axis, 0, case.each(1), case.each(case.T), case.runs),
        Amounts("in pairs", TENSOR.axis, 0, case.pair(1), case.pair(case.T), case.runs),
    )


def _ways(case: Case) -> tuple[Way, ...]:
    rows: tuple[tuple[str, str, Number, str, str], ...] = (
        ("Data parallel", DATA.axis, case.data(), "whatever T is", ""),
        ("Tensor, each layer", TENSOR.axis, case.each(case.T), f"{plain(case.each(1))} for every token",
         _difference(case, "tensor_parallel")),
        ("Tensor, in pairs", TENSOR.axis, case.pair(case.T), f"{plain(case.pair(1))} for every token",
         _difference(case, "tensor_megatron")),
    )
    longest = max(row[2] for row in rows)
    return tuple(Way(name, axis, plain(number), float(98 * number / longest), text, difference)
                 for name, axis, number, text, difference in rows)


def _difference(case: Case, strategy: str) -> str:
    """What a run does otherwise than the formula says."""
    if case.runs:
        return ""
    if case.P < case.H:
        return "cannot run"
    run = case.as_run(strategy)
    even = run.by_rank is not None and len(set(run.by_rank[:run.active_gpus])) == 1
    return f"{'exactly' if even else 'on average'} {plain(run.mean)} on {run.active_gpus} of {case.P} GPUs"


def _said(way: Way) -> str:
    return f"{way.name} {way.number} elements {way.text}" + (f", {way.difference}" if way.difference else "")


def _finding(case: Case) -> tuple[tuple[str, str, str], str]:
    """Who sends more at this T: data parallel, one of the two tensor cuts, or both; and whose hue that is."""
    low, high = tensor_parallel.break_even_tokens(case.H), tensor_parallel.megatron_break_even_tokens(case.H)
    tokens = counted(case.T, "token")
    if low == case.T:
        return (f"At {tokens}, half of H, a sum in each layer costs ", "exactly as much",
                " as one gradient; pairs cost half."), ""
    if high == case.T:
        return (f"At {tokens}, as many as H, pairs cost ", "exactly as much",
                " as one gradient; a sum in each layer costs twice that."), ""
    if low > case.T:
        ratio = times(case.data() / case.each(case.T))
        return (f"At {tokens} the gradient is still the larger load, ", f"{ratio} as much",
                f" as a sum in each layer. They draw level at {plain(low)}."), DATA.axis
    if high > case.T:
        return (f"At {tokens}, between half of H and H, pairing decides: each GPU sends ", "less than the gradient in pairs",
                " and more with a sum in each layer."), TENSOR.axis
    ratio = times(case.pair(case.T) / case.data())
    return (f"At {tokens} even pairs send ", f"{ratio} as much", f" as the gradient. They passed it at {high}."), TENSOR.axis


def _note(case: Case) -> str:
    """What the formulas do not say at these values."""
    if case.runs:
        return ""
    if case.P > case.H:
        return (f"Dotted: {case.H} rows, or {case.H} columns, are too few for {case.P} GPUs. A run keeps {case.H} of them "
                "busy; the formula goes on.")
    return f"Dotted: {case.P} GPUs cannot share {case.H} rows or columns equally. Only the formula speaks of this P."


def _table_row(case: Case, T: int) -> TableRow:
    cells = plain(case.data()), plain(case.each(T)), plain(case.pair(T))
    return TableRow(T, T == case.T, cells)
