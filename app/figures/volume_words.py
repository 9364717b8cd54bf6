"""Sentences of the figure *volume*, each made from the values and true at them."""

from __future__ import annotations

from dataclasses import dataclass

from app.figures.amounts import Amount, Setting, ratio
from app.figures.numbers import Number, counted, plain, tenths, times, word
from app.figures.strategies import DATA, PIPELINE, STRATEGIES, TENSOR, Strategy
from app.theory import pipeline_parallel, tensor_parallel, units

CUT = {DATA.name: "the batch", TENSOR.name: "the matrices", PIPELINE.name: "the layers"}


@dataclass(frozen=True)
class Measure:
    """The unit the reader chose: elements, or bytes at a dtype."""

    unit: str

    def of(self, elements: Number) -> Number:
        return elements if self.unit == "elements" else units.bytes(elements, self.unit)

    @property
    def word(self) -> str:
        return "elements" if self.unit == "elements" else "bytes"

    @property
    def name(self) -> str:
        return "elements" if self.unit == "elements" else f"bytes ({self.unit})"

    def tenths(self, elements: Number) -> str:
        return tenths(self.of(elements))

    def plain(self, elements: Number) -> str:
        return plain(self.of(elements))


@dataclass(frozen=True)
class Finding:
    """One sentence: what stands before the difference that matters, the difference, and the rest.

    `axis` colours the line under the difference; "" where it belongs to no axis.
    """

    before: str
    strong: str
    after: str
    axis: str

    @property
    def text(self) -> str:
        return f"{self.before}{self.strong}{self.after}"


@dataclass(frozen=True)
class Case:
    """All three amounts at the reader's values."""

    P: int
    setting: Setting
    measure: Measure
    amounts: dict[str, Amount]

    def shown(self, strategy: Strategy) -> Number:
        return self.amounts[strategy.name].shown

    @property
    def tensor_runs(self) -> bool:
        return self.amounts[TENSOR.name].exact is not None

    @property
    def stages(self) -> int:
        return pipeline_parallel.stages(self.P, self.setting.L)


def scope_words(strategy: Strategy, setting: Setting) -> str:
    """Whose traffic a number counts."""
    if setting.is_total(strategy):
        return "sent by all GPUs together"
    return "sent by the busiest GPU" if strategy is PIPELINE else "sent by each GPU"


def scope_short(strategy: Strategy, setting: Setting) -> str:
    """The same where there is little room."""
    if setting.is_total(strategy):
        return "in all"
    return "at most" if strategy is PIPELINE else "a GPU"


def difference(strategy: Strategy, case: Case) -> tuple[str, str]:
    """What a run does otherwise than the formula says, and one sentence why; empty where they agree."""
    amount = case.amounts[strategy.name]
    if case.P == 1:
        return "exactly 0", _why_nothing(strategy, case.setting.L)
    if amount.exact is None:
        return "cannot run", (f"{amount.active_gpus} GPUs cannot share {case.setting.H} rows equally, so this number is "
                              "the formula’s alone.")
    if not amount.differs:
        return "", ""
    exact = f"exactly {case.measure.plain(amount.exact)}"
    if strategy is TENSOR:
        return f"{exact} on {amount.active_gpus} of {case.P} GPUs", _why_idle(case)
    return exact, _why_local(case)


def _why_nothing(strategy: Strategy, L: int) -> str:
    if strategy is PIPELINE and L > 1:
        return "All layers sit on the one GPU, so no boundary between them touches the network."
    return "One GPU has nobody to send to."


def _why_idle(case: Case) -> str:
    H = case.setting.H
    return f"{H} rows give {H} GPUs one each; {_others(case.P - H)}."


def _others(count: int) -> str:
    return "the last one holds and sends nothing" if count == 1 else f"the other {count} hold and send nothing"


def _why_local(case: Case) -> str:
    L, S = case.setting.L, case.stages
    sends = "" if case.setting.scope != "gpu" else " An end of the line sends one way only."
    return (f"{L} layers make {S} stages on {case.P} GPUs: {S - 1} of {L - 1} boundaries {'lies' if S == 2 else 'lie'} "
            f"between GPUs.{sends}")


def finding(case: Case) -> Finding:
    """The one sentence under the bars."""
    if case.P == 1:
        return _finding_alone(case)
    return _finding_of_totals(case) if case.setting.scope == "all" else _finding_per_gpu(case)


def _finding_alone(case: Case) -> Finding:
    amount = case.amounts[PIPELINE.name]
    after = ", however you cut."
    if amount.taught > 0:
        boundaries = counted(case.setting.L - 1, "boundary")
        stays = "stays" if case.setting.L == 2 else "stay"
        after = (f", although the pipeline formula says {case.measure.tenths(amount.taught)}: it counts {boundaries} that "
                 f"{stays} inside the GPU.")
    return Finding("One GPU has nobody to talk to and sends ", "exactly 0", after, "")


def _finding_per_gpu(case: Case) -> Finding:
    tail = f", and {_pipeline_clause(case)}."
    if not case.tensor_runs:
        return Finding(f"{_refusal(case)}, so a run can cut ", "only the batch or the layers", tail, "")
    data, tensor = case.shown(DATA), case.shown(TENSOR)
    busy = _busy_clause(case)
    if data == tensor:
        return Finding(f"With {case.P} GPUs, cutting the batch and cutting the matrices{busy} make each one send ",
                       "exactly as much", tail, "")
    winner, loser = (DATA, TENSOR) if data > tensor else (TENSOR, DATA)
    strong = f"{times(ratio(max(data, tensor), min(data, tensor)))} as much"
    first, second = (busy, "") if winner is TENSOR else ("", busy)
    return Finding(f"With {case.P} GPUs, cutting {CUT[winner.name]}{first} makes each one send ", strong,
                   f" as cutting {CUT[loser.name]}{second}{tail}", winner.axis)


def _busy_clause(case: Case) -> str:
    active = case.amounts[TENSOR.name].active_gpus
    return "" if active == case.P else f" (which keeps {word(active)} of them busy)"


def _refusal(case: Case) -> str:
    active = tensor_parallel.active_gpus(case.P, case.setting.H)
    return f"{active} GPUs cannot share {case.setting.H} rows equally"


def _pipeline_clause(case: Case) -> str:
    L, S = case.setting.L, case.stages
    sent = case.measure.tenths(case.shown(PIPELINE))
    if L == 1:
        return "one layer has no boundary, so the pipeline sends 0"
    if case.setting.scope == "gpu":
        return f"the busiest GPU of a pipeline sends {sent}, {'all of it one way' if S == 2 else 'half of it each way'}"
    if case.P < L:
        lie = "lies" if S == 2 else "lie"
        return f"cutting the layers costs {sent} in all, because only {S - 1} of {L - 1} boundaries {lie} between GPUs"
    if case.setting.equal_batches:
        return f"cutting the layers costs {sent} in all, in {case.P} micro-batches"
    return f"cutting the layers costs {sent} in all, however many GPUs you add"


def _finding_of_totals(case: Case) -> Finding:
    compared = [strategy for strategy in STRATEGIES if strategy is not TENSOR or case.tensor_runs]
    largest = max(case.shown(strategy) for strategy in compared)
    most = [strategy for strategy in compared if case.shown(strategy) == largest]
    rest = sorted((strategy for strategy in compared if strategy not in most), key=case.shown, reverse=True)
    where = f"With {case.P} GPUs" if case.tensor_runs else f"{_refusal(case)}; of the cuts that can run"
    verb, each = ("sends", "") if len(most) == 1 else ("send", " each")
    strong = f"the most in all, {case.measure.tenths(largest)}{each}" if rest else f"the same {case.measure.tenths(largest)}"
    cuts = " and ".join(f"cutting {CUT[strategy.name]}" for strategy in most)
    return Finding(f"{where}, {cuts} {verb} ", strong, _compared(case, largest, rest) if rest else " in all.",
                   most[0].axis if len(most) == 1 else "")


def _compared(case: Case, largest: Number, rest: list[Strategy]) -> str:
    """The others beside the largest: how many times each goes into it, and who sends nothing."""
    factors = [f"{times(ratio(largest, case.shown(strategy)))} the {case.measure.tenths(case.shown(strategy))} of cutting "
               f"{CUT[strategy.name]}" for strategy in rest if case.shown(strategy)]
    silent = "".join(f", while cutting {CUT[strategy.name]} sends 0" for strategy in rest if not case.shown(strategy))
    return f"{': ' if factors else ''}{' and '.join(factors)}{silent}."
