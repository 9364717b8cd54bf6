"""Who sends what: the chosen strategy of the figure *volume*, GPU by GPU, as gloo cuts the buffers on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from app.figures import svg
from app.figures.amounts import Setting
from app.figures.numbers import Number, counted
from app.figures.strategies import DATA, PIPELINE, TENSOR, Strategy
from app.figures.volume_words import Case
from app.theory import CAUSE_TEXT, predict
from app.theory.predictions import Prediction
from app.theory.volume import UNEVEN

RUN_AS = {DATA.name: "data_parallel", TENSOR.name: "tensor_parallel", PIPELINE.name: "pipeline_gpipe"}
MOST_ROWS = 8
MOST_SQUARES = 64
SQUARE = 8.0
PITCH = 10.0
COLUMN_HEIGHT = 96.0


@dataclass(frozen=True)
class Rank:
    """One GPU: what it sends in words, as squares (one each number) and as a share of the busiest one's bar."""

    rank: int
    text: str
    squares: str
    percent: float
    idle: bool


@dataclass(frozen=True)
class Column:
    """One GPU of many, as an upright bar; lengths in percent of the width and in pixels."""

    x: float
    width: float
    y: float
    height: float


@dataclass(frozen=True)
class RankPanel:
    """Up to eight GPUs as rows, more as upright bars; neither where the strategy cannot run."""

    strategy: Strategy
    heading: str
    note: str
    rows: tuple[Rank, ...]
    columns: tuple[Column, ...]
    table: tuple[tuple[int, str], ...]
    column_labels: tuple[str, str]

    squares_width: float  # 0 where bars take the place of squares


def sent_by_rank(strategy: Strategy, case: Case) -> tuple[Number, ...] | None:
    """Elements each of the P ranks sends; None where no run can be cut this way."""
    if case.amounts[strategy.name].exact is None:
        return None
    return prediction(strategy, case.P, case.setting).exact.by_rank


@lru_cache(maxsize=256)
def prediction(strategy: Strategy, P: int, setting: Setting) -> Prediction:
    """Of the run that the figure stands for."""
    T = setting.tensor_tokens(P) if strategy is TENSOR else setting.T
    m = setting.micro_batches(P) if strategy is PIPELINE else 1
    return predict(RUN_AS[strategy.name], P=P, L=setting.L, H=setting.H, T=T, m=m)


def rank_panel(strategy: Strategy, case: Case) -> RankPanel:
    """The chosen strategy at the reader's values."""
    by_rank = sent_by_rank(strategy, case)
    heading = f"{strategy.title}, GPU by GPU"
    if by_rank is None:
        return RankPanel(strategy, heading, "No run can be cut this way, so there is nothing to list.", (), (), (), ("", ""), 0)
    active = case.amounts[strategy.name].active_gpus
    few = case.P <= MOST_ROWS and any(by_rank)
    rows = [_rank(rank, elements, max(by_rank), rank >= active, case) for rank, elements in enumerate(by_rank) if few]
    return RankPanel(
        strategy, heading, _note(strategy, case, by_rank), tuple(rows), _columns(by_rank) if case.P > MOST_ROWS else (),
        tuple((rank, case.measure.plain(elements)) for rank, elements in enumerate(by_rank)),
        ("GPU 0", f"GPU {case.P - 1}"), _squares_width(max(by_rank)) if few else 0,
    )


def _squares_width(most: Number) -> float:
    return 0 if most > MOST_SQUARES else svg.squares_extent(int(most), MOST_SQUARES, SQUARE, PITCH)[0] if most else 0


def _rank(rank: int, elements: Number, most: Number, idle: bool, case: Case) -> Rank:
    squares = svg.squares(int(elements), 0, 4, MOST_SQUARES, SQUARE, PITCH) if most <= MOST_SQUARES else ""
    percent = 0.0 if most == 0 else 100 * float(elements) / float(most)
    return Rank(rank, "idle" if idle else case.measure.plain(elements), squares, percent, idle)


def _columns(by_rank: tuple[Number, ...]) -> tuple[Column, ...]:
    share = 100 / len(by_rank)
    most = max(float(elements) for elements in by_rank) or 1.0
    heights = [COLUMN_HEIGHT * float(elements) / most for elements in by_rank]
    return tuple(Column(rank * share, share * 0.7, COLUMN_HEIGHT - height, height) for rank, height in enumerate(heights))


def _note(strategy: Strategy, case: Case, by_rank: tuple[Number, ...]) -> str:
    """Equal or not, and why; then who stands idle."""
    active = case.amounts[strategy.name].active_gpus
    sends = by_rank[:active]
    idle = f" {counted(case.P - active, 'GPU')} of {case.P} {'stands' if case.P - active == 1 else 'stand'} idle."
    return _spread_text(strategy, case, sends) + (idle if active < case.P else "")


def _spread_text(strategy: Strategy, case: Case, sends: tuple[Number, ...]) -> str:
    plain = case.measure.plain
    if not any(sends):
        return "Nothing is sent."
    if len(set(sends)) == 1:
        return f"Each of {counted(len(sends), 'GPU')} sends {plain(sends[0])} {case.measure.word}."
    if strategy is PIPELINE:
        return (f"The two ends of the line send {plain(sends[0])} {case.measure.word} each, "
                f"those between send both ways and so {plain(sends[1])}.")
    run = prediction(strategy, case.P, case.setting)
    causes = " ".join(CAUSE_TEXT[cause] for cause in run.causes if cause in UNEVEN)
    return (f"From {plain(min(sends))} to {plain(max(sends))} {case.measure.word}, "
            f"{case.measure.tenths(run.exact.mean)} on average. {causes}")
