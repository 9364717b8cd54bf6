"""What a step of the toy model sends under each strategy, counted the way the reader asked for. Elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from app.figures.numbers import Number
from app.figures.strategies import DATA, PIPELINE, TENSOR, Strategy
from app.theory import data_parallel, pipeline_parallel, tensor_parallel


@dataclass(frozen=True)
class Setting:
    """Everything but P. `scope` is stated, gpu or all.

    With equal batches every strategy sees the P T tokens that P data-parallel replicas see: tensor parallel in one
    micro-batch of P T tokens, the pipeline in P micro-batches of T.
    """

    L: int
    H: int
    T: int
    scope: str
    equal_batches: bool

    def tensor_tokens(self, P: int) -> int:
        return self.T * P if self.equal_batches else self.T

    def micro_batches(self, P: int) -> int:
        return P if self.equal_batches else 1

    def is_total(self, strategy: Strategy) -> bool:
        """Whether the number counts all GPUs together. As stated in the lesson, the pipeline's alone does."""
        return self.scope == "all" or (self.scope == "stated" and strategy is PIPELINE)

    @property
    def is_bounded(self) -> bool:
        """Whether the volumes stay below a limit as P grows."""
        return self.scope != "all" and not self.equal_batches


@dataclass(frozen=True)
class Amount:
    """`taught` is the lesson's formula; `exact` is what a run sends, None where no run can be cut this way."""

    taught: Number
    exact: Number | None
    active_gpus: int

    @property
    def shown(self) -> Number:
        """The exact number where there is one."""
        return self.taught if self.exact is None else self.exact

    @property
    def differs(self) -> bool:
        return self.exact != self.taught


def amount(strategy: Strategy, P: int, setting: Setting) -> Amount:
    """What `strategy` sends on P GPUs."""
    return _AMOUNTS[strategy.name](P, setting)


def _data(P: int, setting: Setting) -> Amount:
    volume = data_parallel.total_volume if setting.is_total(DATA) else data_parallel.volume
    sent = volume(P, setting.L, setting.H)
    return Amount(sent, sent, P)


def _tensor(P: int, setting: Setting) -> Amount:
    L, H, T = setting.L, setting.H, setting.tensor_tokens(P)
    active = tensor_parallel.active_gpus(P, H)
    taught: Number
    exact: Number
    if setting.is_total(TENSOR):
        taught, exact = tensor_parallel.taught_total(P, L, H, T), tensor_parallel.exact_total(P, L, H, T)
    else:
        taught, exact = tensor_parallel.taught_volume(P, L, H, T), tensor_parallel.exact_volume(P, L, H, T)
    return Amount(taught, exact if tensor_can_run(P, H) else None, active)


def _pipeline(P: int, setting: Setting) -> Amount:
    L, H, T, m = setting.L, setting.H, setting.T, setting.micro_batches(P)
    active = pipeline_parallel.stages(P, L)
    if setting.is_total(PIPELINE):
        taught, exact = pipeline_parallel.taught_volume(L, H, T, m), pipeline_parallel.exact_volume(P, L, H, T, m)
    else:  # as the lesson counts, every layer has a GPU of its own: as many GPUs as layers
        taught = pipeline_parallel.busiest_gpu_volume(L, L, H, T, m)
        exact = pipeline_parallel.busiest_gpu_volume(P, L, H, T, m)
    return Amount(taught, exact, active)


def tensor_can_run(P: int, H: int) -> bool:
    """Whether min(P, H) GPUs can share H rows equally."""
    return H % tensor_parallel.active_gpus(P, H) == 0


_AMOUNTS: dict[str, Callable[[int, Setting], Amount]] = {
    DATA.name: _data,
    TENSOR.name: _tensor,
    PIPELINE.name: _pipeline,
}


def ratio(larger: Number, smaller: Number) -> Fraction:
    """How many times the smaller number fits into the larger."""
    return Fraction(larger) / Fraction(smaller)
