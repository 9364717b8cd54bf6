"""Every strategy against real runs: the grid, and what became of each cell.

One launch per world size carries all cells of that size, for joining costs more than measuring; those that a failed cell leaves
without a result get another launch.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.errors import RunEnded
from app.runs.launch import Event, Launcher
from app.runs.results import Result, Verdict, compare
from kernels.spec import (
    STRATEGY_SPECS,
    Choice,
    Experiment,
    OptionValue,
    RunSpec,
    StrategySpec,
    experiment_faults,
    is_installed,
)

LAYERS = range(1, 7)
WIDTHS = (2, 4, 8, 16)
TOKENS = (1, 3)
MICRO_BATCHES = (1, 3)
Options = Mapping[str, OptionValue]
# Options that make sense only together, and numbers. Words that a strategy declares and that occur nowhere here run alone.
TOGETHER: Mapping[str, Sequence[Options]] = {
    "data_parallel": (  # 65 bytes: no whole number of elements
        {"sync": "per_parameter"}, {"sync": "bucketed"}, {"sync": "bucketed", "bucket_bytes": 65},
        {"accumulation": 3}, {"accumulation": 3, "sync_when": "every_micro_step"}, {"comm_dtype": "bf16"},
        {"sync": "bucketed", "accumulation": 2, "sync_when": "every_micro_step", "comm_dtype": "bf16"},
    ),
    "ddp": (
        {"bucket_bytes": 65}, {"accumulation": 3}, {"accumulation": 3, "sync_when": "every_micro_step"},
        {"comm_dtype": "bf16"}, {"bucket_bytes": 80, "comm_dtype": "bf16", "accumulation": 2},
    ),
    "tensor_megatron": (
        {"collectives": "ring"}, {"activations": "sequence_parallel"},
        {"activations": "sequence_parallel", "collectives": "ring"},
    ),
}
# L, H and T with options: sequence parallelism needs tokens that many P divide, 1F1B as many micro-batches as stages.
OPTION_SHAPES = ((2, 4, 4), (4, 8, 24), (5, 3, 1))
OPTION_MICRO_BATCHES = 5
# Buffer lengths for the collectives: shorter than any world, divided by some P and not by others, and one of several KB.
LENGTHS = (3, 32, 1001)
CALLS = 3  # of the collective in one step, at the second length

QUICK_CELLS = 20  # per world size: the whole quick run stays below two minutes on two cores
SECONDS_TO_JOIN = 30.0
SECONDS_PER_CELL = 6.0  # a generous bound; about 0.3 is usual
MOST_ENDED = 3  # launches that one strategy may end on one world size before its further cells are left out


@dataclass(frozen=True)
class Cell:
    """One strategy at one setting, and its result; `failure` says why there is none."""

    P: int
    experiment: Experiment
    result: Result | None
    failure: str = ""

    @property
    def holds(self) -> bool:
        return self.result is not None and self.result.holds


def grid(world_size: int) -> list[Experiment]:
    """Every valid setting of every strategy on this many ranks, as far as this installation has what it needs."""
    return [experiment for experiment in _all_settings()
            if not experiment_faults(world_size, experiment) and is_installed(experiment.strategy)]


def _all_settings() -> Iterator[Experiment]:
    for name, strategy in STRATEGY_SPECS.items():
        if name == "ring_all_reduce":
            yield from _collectives(strategy)
            continue
        if name == "loss_reduction":  # its model and its batch are what they are
            yield from (Experiment(name, options=options) for options in ({}, *beside_the_defaults(strategy)))
            continue
        micro_batches = OPTION_MICRO_BATCHES if strategy.uses_micro_batches else 1
        for options in beside_the_defaults(strategy):
            yield from (Experiment(name, *shape, micro_batches, options) for shape in OPTION_SHAPES)
        for layers in LAYERS:
            for width in WIDTHS:
                for tokens in TOKENS:
                    for m in MICRO_BATCHES if strategy.uses_micro_batches else (1,):
                        yield Experiment(name, layers, width, tokens, m)


def beside_the_defaults(strategy: StrategySpec) -> list[Options]:
    """Options of this strategy that are run beside its defaults: those named TOGETHER, and every word not among them."""
    chosen: list[Options] = list(TOGETHER.get(strategy.name, ()))
    for option in strategy.options:
        if isinstance(option, Choice):
            chosen += [{option.name: word} for word in option.values[1:] if all(one.get(option.name) != word for one in chosen)]
    return chosen


def _collectives(strategy: StrategySpec) -> Iterator[Experiment]:
    """Every collective in every implementation, so all words of one option with all words of the other."""
    choices = [option for option in strategy.options if isinstance(option, Choice)]
    for words in itertools.product(*(choice.values for choice in choices)):
        chosen = {choice.name: word for choice, word in zip(choices, words, strict=True)}
        yield from (Experiment(strategy.name, options={**chosen, "elements": length}) for length in LENGTHS)
        yield Experiment(strategy.name, options={**chosen, "elements": LENGTHS[1], "calls": CALLS})


def quick(cells: list[Experiment], seed: int, world_size: int) -> list[Experiment]:
    """A part of the grid fixed by the seed: every strategy that runs on this many ranks as often as room allows, with options
    and without."""
    draw = random.Random(f"{seed}/{world_size}")
    shuffled = draw.sample(cells, len(cells))
    seen: Counter[tuple[str, bool]] = Counter()
    turns: list[tuple[int, Experiment]] = []
    for cell in shuffled:  # first one of each kind, then a second one
        kind = cell.strategy, bool(cell.options)
        turns.append((seen[kind], cell))
        seen[kind] += 1
    return [cell for _, cell in sorted(turns, key=lambda turn: turn[0])[:QUICK_CELLS]]


def verify_world(launcher: Launcher, world_size: int, experiments: Sequence[Experiment],
                 on_progress: Callable[[int, int], None]) -> list[Cell]:
    """Run these cells in one launch. Where one of them ends it, the others get another.

    `on_progress` is told how many cells are done, and how many there are.
    """
    world = _World(launcher, world_size, experiments, on_progress)
    world.measure(range(len(experiments)))
    return [world.cells[place] for place in range(len(experiments))]


@dataclass
class _World:
    """The cells of one world size, and by their places what became of those that are done."""

    launcher: Launcher
    world_size: int
    experiments: Sequence[Experiment]
    on_progress: Callable[[int, int], None]
    cells: dict[int, Cell] = field(default_factory=dict)
    ended_by: Counter[str] = field(default_factory=Counter)  # launches that ended in a cell of this strategy

    def measure(self, wanted: Sequence[int]) -> None:
        """Give these cells a launch, and where it ends early one to those before the cell that ended it and to those after."""
        places = [place for place in wanted if not self._given_up(place)]
        if not places:
            return
        begun: dict[int | None, int] = {}  # by rank, the cell it was in; by None the last that any began

        def on_event(event: Event) -> None:
            if "experiment" in event.facts:
                begun[event.facts.get("rank")] = begun[None] = event.facts["experiment"]
                self.on_progress(len(self.cells) + event.facts["experiment"], len(self.experiments))

        try:
            report = self.launcher.run(self._spec(places), on_event=on_event)
        except RunEnded as ended:
            last = begun.get(ended.rank, begun.get(None))
            self._fail(places if last is None else [places[last]], str(ended))
            if last is not None:
                self.ended_by[self.experiments[places[last]].strategy] += 1
                self.measure(places[:last])
                self.measure(places[last + 1:])
        else:
            for place, result in zip(places, compare(report), strict=True):
                self.cells[place] = Cell(self.world_size, result.experiment, result)

    def _spec(self, places: Sequence[int]) -> RunSpec:
        limit = SECONDS_TO_JOIN + SECONDS_PER_CELL * len(places)
        return RunSpec(self.world_size, tuple(self.experiments[place] for place in places), time_limit_seconds=limit)

    def _given_up(self, place: int) -> bool:
        """Whether its strategy has ended so many launches that it gets no further one; then the cell says so."""
        strategy = self.experiments[place].strategy
        if self.ended_by[strategy] < MOST_ENDED:
            return False
        self._fail([place], f"Not run: {strategy} had ended {MOST_ENDED} launches on {self.world_size} ranks.")
        return True

    def _fail(self, places: Sequence[int], why: str) -> None:
        for place in places:
            self.cells[place] = Cell(self.world_size, self.experiments[place], None, why)


@dataclass(frozen=True)
class Row:
    """What became of one strategy over all its cells."""

    strategy: str
    cells: int
    equal: int
    differs: int
    inconclusive: int
    failed: int
    gaps: tuple[str, ...]  # causes seen between this backend and the lesson's formula

    @property
    def holds(self) -> bool:
        return self.cells == self.equal and self.cells > 0


def summary(cells: list[Cell]) -> list[Row]:
    """A row for each strategy that was run, in the order of the table of strategies."""
    return [_row(name, [cell for cell in cells if cell.experiment.strategy == name])
            for name in STRATEGY_SPECS if any(cell.experiment.strategy == name for cell in cells)]


def _row(strategy: str, cells: list[Cell]) -> Row:
    results = [cell.result for cell in cells if cell.result is not None]
    verdicts = Counter(result.verdict for result in results)
    causes = sorted({str(cause) for result in results for cause in result.prediction.causes})
    off_weights = sum(1 for result in results if result.verdict is Verdict.EQUAL and not result.weights_equal)
    return Row(
        strategy=strategy,
        cells=len(cells),
        equal=verdicts[Verdict.EQUAL] - off_weights,
        differs=verdicts[Verdict.DIFFERS] + off_weights,
        inconclusive=verdicts[Verdict.INCONCLUSIVE],
        failed=len(cells) - len(results),
        gaps=tuple(causes),
    )
