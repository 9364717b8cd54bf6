"""The figure *matrix split*: which GPU holds which block of two matrices, and where partial sums have to be added up."""

from __future__ import annotations

from dataclasses import dataclass

from app.figures.inputs import Choice, Field, Inputs, Option
from app.figures.matrix_split_drawing import (
    ABSENT,
    FIRST,
    HELD,
    INPUT,
    LEFT_OVER,
    MIDDLE,
    NARROW,
    OUTPUT,
    SECOND,
    SENT,
    WIDE,
    ZERO,
    Content,
    Drawing,
    Part,
    Share,
    draw,
)
from app.figures.numbers import counted, plain
from app.theory import tensor_parallel
from kernels import spec

T = spec.T.default  # one token, so that an activation is one row of squares
LAYERS = 2
FIELDS = (
    Field("P", "GPUs", "GPUs", 1, spec.P.maximum, spec.P.default),
    Field("H", "width", "numbers", 2, 8, spec.H.default),
    Choice("split", "Cut", (Option("each", "each layer for itself"), Option("pair", "two layers as a pair"))),
    Choice("direction", "Going", (Option("forward", "forward"), Option("backward", "backward"))),
)


@dataclass(frozen=True)
class TableRow:
    """What one GPU holds and what it puts into sums, in words."""

    rank: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class MatrixSplitView:
    """`sums` says how many all-reduces this direction takes; `content` is what both drawings show."""

    wide: Drawing
    narrow: Drawing
    title: str
    finding: tuple[str, str, str]
    note: str
    sums: int
    content: Content
    table_heads: tuple[str, ...]
    table: tuple[TableRow, ...]
    status: str


@dataclass(frozen=True)
class Case:
    """The reader's values."""

    P: int
    H: int
    pair: bool
    forward: bool

    @property
    def active(self) -> int:
        return tensor_parallel.active_gpus(self.P, self.H)

    @property
    def left_over(self) -> int:
        """Rows or columns that nobody gets in an equal split; with any, there is none."""
        return self.H % self.active

    @property
    def runs(self) -> bool:
        return not self.left_over

    @property
    def num_sums(self) -> int:
        """All-reduces going this way."""
        if not self.runs or self.active == 1:
            return 0
        return 1 if self.pair else LAYERS

    @property
    def once(self) -> str:
        return plain(tensor_parallel.boundary_volume(self.active, self.H, T))

    @property
    def sent(self) -> str:
        """By each GPU, going this way."""
        return plain(self.num_sums * tensor_parallel.boundary_volume(self.active, self.H, T))

    @property
    def step(self) -> str:
        """By each GPU, forward and backward."""
        volume = tensor_parallel.megatron_volume if self.pair else tensor_parallel.exact_volume
        return plain(volume(self.active, LAYERS, self.H, T))


def compute(inputs: Inputs) -> MatrixSplitView:
    """Everything the figure shows at these inputs. Counts come from app.theory."""
    case = Case(inputs.number("P"), inputs.number("H"), inputs.choice("split") == "pair",
                inputs.choice("direction") == "forward")
    content = _content(case)
    finding = _finding(case)
    return MatrixSplitView(
        wide=draw(content, WIDE), narrow=draw(content, NARROW), title=_title(case), finding=finding, note=_note(case),
        sums=case.num_sums, content=content, table_heads=_table_heads(case), table=_table(case, content),
        status=f"P = {case.P}, H = {case.H}: {''.join(finding)}",
    )


def shares(P: int, H: int) -> tuple[Share, ...]:
    """Equal stretches of H for the GPUs that work, none for the others. What is left over belongs to nobody."""
    active = tensor_parallel.active_gpus(P, H)
    size = H // active
    return tuple(Share(rank, rank * size, (rank + 1) * size) if rank < active else Share(rank, 0, 0) for rank in range(P))


def _content(case: Case) -> Content:
    owners = shares(case.P, case.H)
    left_over = Share(-1, case.H - case.left_over, case.H)
    parts = tuple(() if share.idle else _parts(case, share, left_over) for share in owners)
    return Content(case.H, _heads(case), owners, parts, _signs(case), _sums(case))


def _parts(case: Case, mine: Share, left_over: Share) -> tuple[Part, ...]:
    H, whole = case.H, Part(((HELD,) * case.H,))
    kinds = tuple(HELD if index in mine else LEFT_OVER if index in left_over else ABSENT for index in range(H))
    by_columns, by_rows = Part((kinds,) * H), Part(tuple((kind,) * H for kind in kinds))
    own = Part((kinds,))
    adds_up = Part(((SENT if case.num_sums else HELD,) * H,))
    slice_and_zeros = Part((tuple(SENT if index in mine else ZERO for index in range(H)),)) if case.num_sums else own
    if case.pair:
        ends = (whole, adds_up) if case.forward else (adds_up, whole)
        return ends[0], by_columns, own, by_rows, ends[1]
    if case.forward:
        return Part(whole.rows, used=mine), by_rows, adds_up, by_rows, adds_up
    return slice_and_zeros, by_rows, slice_and_zeros, by_rows, whole


def _heads(case: Case) -> tuple[tuple[str, str], ...]:
    """Names, and under them what a GPU has of each."""
    names = ("x", "A", "z", "B", "y") if case.forward else ("dx", "A", "dz", "B", "dy")
    return tuple(zip(names, _what_it_has(case), strict=True))


def _what_it_has(case: Case) -> tuple[str, ...]:
    if case.active == 1:
        return ("whole",) * 5
    first = "its columns" if case.pair else "its rows"
    if not case.runs:
        return "", first, "", "its rows", ""
    if case.forward:
        return "input", first, "its slice" if case.pair else "partial sums", "its rows", "partial sums"
    end, middle = ("partial sums", "its slice") if case.pair else ("with zeros", "with zeros")
    return end, first, middle, "its rows", "the same"


def _signs(case: Case) -> tuple[str, ...]:
    if not case.forward:
        return "←", "←", "←" if case.pair else "", "←"
    return "×", "=", "×" if case.pair else "", "="


def _sums(case: Case) -> dict[int, tuple[str, str]]:
    """Where this way of going has sums, and what each costs."""
    if not case.num_sums:
        return {}
    cost = f"{case.once} from each"
    if case.pair:
        return {OUTPUT: ("g", cost)} if case.forward else {INPUT: ("f", cost)}
    places = (MIDDLE, OUTPUT) if case.forward else (INPUT, MIDDLE)
    return dict.fromkeys(places, ("sum", cost))


def _finding(case: Case) -> tuple[str, str, str]:
    if not case.runs:
        return (f"{case.active} GPUs cannot share {case.H} {'columns' if case.pair else 'rows'} equally: ",
                f"{case.left_over} {'is' if case.left_over == 1 else 'are'} left over", ", and no run is started.")
    if case.active == 1:
        return "One GPU has both matrices whole, adds up nothing with anybody, and sends ", "0 elements", "."
    if case.pair:
        return _finding_of_a_pair(case)
    way = "ends in partial sums" if case.forward else "gives back its own slice and zeros"
    return (f"Every row split {way}, so each layer needs a sum of its own: ",
            f"{LAYERS} × {case.once} = {case.sent} elements", " sent by each GPU.")


def _finding_of_a_pair(case: Case) -> tuple[str, str, str]:
    if case.forward:
        return ("The columns of A make exactly the slice that the rows of B want. Only y is added up: ",
                f"{case.sent} elements", " sent by each GPU.")
    return ("Going back, nothing is missing until the columns of A have each done their part of dx. Only dx is added up: ",
            f"{case.sent} elements", " sent by each GPU.")


def _note(case: Case) -> str:
    """What the drawing leaves open."""
    parts: list[str] = []
    if not case.runs:
        possible = ", ".join(str(size) for size in range(1, case.H + 1) if case.H % size == 0)
        return (f"Dashed squares belong to nobody. With H = {case.H} an equal split exists for P = {possible}, and above "
                f"{case.H} for every P, with idle GPUs.")
    if case.active < case.P:
        idle = case.P - case.active
        parts.append(f"{case.H} {'columns' if case.pair else 'rows'} are enough for {case.H} GPUs. "
                     f"{counted(idle, 'GPU')} {'has' if idle == 1 else 'have'} nothing to multiply.")
    if case.num_sums and not case.pair and case.forward:
        parts.append("After the first sum every GPU has all of z, and takes its slice of it to its rows of B.")
    if case.num_sums and not case.pair and not case.forward:
        parts.append("The zeros travel too. An all-gather of the slices would do, for half of it.")
    if case.num_sums:
        parts.append(f"A whole step, forward and backward, takes {2 * case.num_sums} all-reduces: {case.step} elements sent by "
                     "each GPU.")
    return " ".join(parts)


def _title(case: Case) -> str:
    way = "going forward" if case.forward else "going backward"
    cut = ("A by columns and B by rows" if case.pair else "A and B both by rows")
    if not case.runs:
        return f"{case.active} GPUs, {cut}: no equal split of {case.H}."
    share = counted(case.H // case.active, "row or column", "rows or columns") if case.pair else counted(
        case.H // case.active, "row")
    return (f"{counted(case.active, 'GPU')}, {way}: {cut}, {share} of each for a GPU; "
            f"{counted(case.num_sums, 'all-reduce')} of {case.H} numbers.")


def _table_heads(case: Case) -> tuple[str, ...]:
    way = "forward" if case.forward else "backward"
    return "Weights of A", "Weights of B", f"Numbers put into sums, {way}"


def _table(case: Case, content: Content) -> tuple[TableRow, ...]:
    """Counted from the drawing's own squares."""
    first = "columns" if case.pair else "rows"
    rows: list[TableRow] = []
    for share, parts in zip(content.shares, content.parts, strict=True):
        if share.idle:
            rows.append(TableRow(share.rank, ("none, idle", "none, idle", "0")))
            continue
        put = sum(parts[place].count(SENT) + parts[place].count(ZERO) for place in content.sums)
        zeros = sum(parts[place].count(ZERO) for place in content.sums)
        rows.append(TableRow(share.rank, (
            f"{parts[FIRST].count(HELD)}, {first} {_span(share)}", f"{parts[SECOND].count(HELD)}, rows {_span(share)}",
            f"{put}, {zeros} of them zeros" if zeros else str(put),
        )))
    return tuple(rows)


def _span(share: Share) -> str:
    """Counted from 1, as on paper."""
    return str(share.stop) if share.stop == share.start + 1 else f"{share.start + 1} to {share.stop}"
