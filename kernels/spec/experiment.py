"""What may be asked for: experiments, runs, the limits of their numbers, and what a strategy declares of itself."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

OptionValue = str | int | bool

MAX_WORLD_SIZE = 8
LARGEST_PREDICTED = 1_000_000  # layers, width, tokens: beyond any model there is
LARGEST_PREDICTED_WORLD = 65_536
LARGEST_PREDICTED_OPTION = 10**15  # elements, bytes, calls, micro-steps
BYTES_PER_ELEMENT = {"fp64": 8, "fp32": 4, "bf16": 2, "fp16": 2}
COLLECTIVES = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "send_recv")
IMPLEMENTATIONS = ("ring", "library")
LOSS_TOKENS = (-1, 2, -3, 4)  # inputs of loss_reduction, whose targets are 0 and whose one weight is 1


@dataclass(frozen=True)
class Range:
    """A whole number with limits, both allowed."""

    name: str
    meaning: str
    default: int
    minimum: int
    maximum: int


@dataclass(frozen=True)
class Choice:
    """One of a few words; the first is the default."""

    name: str
    meaning: str
    values: tuple[str, ...]


P = Range("P", "GPUs (world size, one rank each)", 4, 1, MAX_WORLD_SIZE)
L = Range("L", "layers of the toy model", 2, 1, 16)
H = Range("H", "hidden width; a layer is an H × H weight", 4, 1, 64)
T = Range("T", "tokens of one micro-batch on one replica", 1, 1, 64)
M = Range("m", "micro-batches of a pipeline step", 1, 1, 16)
ELEMENTS = Range("elements", "elements of the buffer; 0 means L*H*H", 0, 0, 4_194_304)
# 262,144 fp64 elements are 2 MiB. Up to that much for each rank gloo cuts a buffer into as many messages for fp64 as for
# fp32, so that their difference is payload; a timing run counts no payload and may go beyond.
COUNTED_ELEMENTS_PER_RANK = 262_144
CALLS = Range("calls", "how often a step calls the collective; its time is then that of so many", 1, 1, 100)
ACCUMULATION = Range("accumulation", "micro-steps whose gradients add up to one optimizer step", 1, 1, 16)
SYNC_WHEN = Choice("sync_when", "reduce gradients once an optimizer step, or in every micro-step", ("once", "every_micro_step"))
COMM_DTYPE = Choice("comm_dtype", "type of the gradients on the wire", ("fp32", "bf16"))
PURPOSES = ("counting", "timing")
BACKENDS = ("auto", "gloo", "nccl")
# A verdict wants so many readings that agree; fewer could only end without one. Where a run only times, nothing has to agree.
AGREEING_READINGS = 3
REPETITIONS = Range("repetitions", "readings of each experiment", AGREEING_READINGS, AGREEING_READINGS, 9)
TIMING_REPETITIONS = Range("repetitions", REPETITIONS.meaning, 1, 1, REPETITIONS.maximum)
WARMUP_STEPS = Range("warmup_steps", "steps before the first reading", 3, 1, 9)
LONGEST_RUN_SECONDS = 86_400.0
BUCKET_MEANING = "a bucket is closed once it holds so many bytes of fp32 gradients"


@dataclass(frozen=True)
class Experiment:
    """One strategy at one setting. `options` holds what only this strategy knows."""

    strategy: str
    L: int = L.default
    H: int = H.default
    T: int = T.default
    m: int = M.default
    options: Mapping[str, OptionValue] = field(default_factory=dict)

    def option(self, name: str) -> OptionValue:
        """The option as given, or its declared default."""
        if name in self.options:
            return self.options[name]
        declared = {option.name: option for option in STRATEGY_SPECS[self.strategy].options}[name]
        return declared.default if isinstance(declared, Range) else declared.values[0]


@dataclass(frozen=True)
class RunSpec:
    """One elastic launch: a world size and the experiments measured in it, one after the other.

    `purpose` is "counting" (bytes on sockets) or "timing" (the backend left alone, call-level bytes). `backend` "auto" means
    NCCL where every rank gets a GPU of its own, gloo everywhere else.
    """

    P: int
    experiments: tuple[Experiment, ...]
    repetitions: int = REPETITIONS.default
    warmup_steps: int = WARMUP_STEPS.default
    time_limit_seconds: float = 60.0
    purpose: str = PURPOSES[0]
    seed: int = 0
    backend: str = BACKENDS[0]


@dataclass(frozen=True)
class Fault:
    """Why a spec is refused: the field, the value that was given, and what is allowed."""

    field: str
    value: OptionValue
    allowed: str

    def __str__(self) -> str:
        return f"{self.field} = {self.value}: {self.allowed}"


Rule = Callable[[int, Experiment], list[Fault]]


@dataclass(frozen=True)
class StrategySpec:
    """What a strategy is called, what it takes and where it cannot run."""

    name: str
    title: str
    axis: str  # data, tensor, pipeline, shard, or none
    summary: str
    library: str | None = None  # None: hand-written, through kernels.comm
    options: tuple[Range | Choice, ...] = ()
    rules: tuple[Rule, ...] = ()
    uses_micro_batches: bool = False
    requires: Requirement | None = None


@dataclass(frozen=True)
class Requirement:
    """A library that only some installations have: what is imported, and the extra of this project that brings it."""

    module: str
    extra: str

    def is_installed(self) -> bool:
        """Looked up, not imported: importing may take seconds, and would bring torch into the web process."""
        try:
            return importlib.util.find_spec(self.module) is not None
        except ModuleNotFoundError:  # not even the package that the module would lie in
            return False


# Filled by kernels.spec.strategies; a launch host adds to it what tests bring.
STRATEGY_SPECS: dict[str, StrategySpec] = {}


def tensor_active_gpus(world_size: int, width: int) -> int:
    """P' = min(P, H): GPUs that hold a shard of an H x H weight; the others idle."""
    return min(world_size, width)


def pipeline_stages(world_size: int, layers: int) -> int:
    """S = min(P, L)."""
    return min(world_size, layers)
