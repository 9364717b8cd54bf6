"""The contract between app and kernels: RunSpec in, RunReport out, both JSON. Standard library only.

What may be asked for stands here as data (`STRATEGY_SPECS`): the command line, the forms and the ledger read it,
`kernels.strategies.STRATEGIES` maps the same names to code, and a test holds the two equal.

Symbols, the same in every room: P world size, L layers, H hidden width, T tokens of one micro-batch on one replica,
m micro-batches of a pipeline step.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from kernels.schedule import DDP_BUCKET_BYTES

OptionValue = str | int | bool

MAX_WORLD_SIZE = 8
LARGEST_PREDICTED = 1_000_000  # layers, width, tokens: beyond any model there is
LARGEST_PREDICTED_WORLD = 65_536
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
H = Range("H", "hidden width; a layer is an H x H weight", 4, 1, 64)
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

    `purpose` is "counting" (bytes on sockets) or "timing" (the backend left alone, call-level bytes).
    """

    P: int
    experiments: tuple[Experiment, ...]
    repetitions: int = 3
    warmup_steps: int = 3
    time_limit_seconds: float = 60.0
    purpose: str = "counting"
    seed: int = 0


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


def tensor_active_gpus(world_size: int, width: int) -> int:
    """P' = min(P, H): GPUs that hold a shard of an H x H weight; the others idle."""
    return min(world_size, width)


def pipeline_stages(world_size: int, layers: int) -> int:
    """S = min(P, L)."""
    return min(world_size, layers)


def _width_splits(world_size: int, experiment: Experiment) -> list[Fault]:
    active = tensor_active_gpus(world_size, experiment.H)
    if experiment.H % active == 0:
        return []
    return [Fault("P", world_size, f"min(P, H) = {active} does not divide H = {experiment.H}; with H = {experiment.H}, "
                  f"P may be {_divisors(experiment.H)}, or more than {experiment.H}")]


def _width_divides_exactly(world_size: int, experiment: Experiment) -> list[Fault]:
    if experiment.H % world_size == 0:
        return []
    return [Fault("P", world_size, f"the library shards H = {experiment.H} evenly and leaves no GPU out, so P must divide H; "
                  f"with H = {experiment.H}, P may be {_divisors(experiment.H)}")]


def _layers_pair_up(world_size: int, experiment: Experiment) -> list[Fault]:
    if experiment.L % 2 == 0:
        return []
    return [Fault("L", experiment.L, "layers come in pairs, a column split and then a row split, so L must be even")]


def _enough_micro_batches(world_size: int, experiment: Experiment) -> list[Fault]:
    stages = pipeline_stages(world_size, experiment.L)
    if experiment.option("schedule") != "1f1b" or experiment.m >= stages:
        return []
    return [Fault("m", experiment.m, f"torch's 1F1B wants at least one micro-batch a stage: m must be {stages} or more, "
                  "or schedule = gpipe")]


def _tokens_split(world_size: int, experiment: Experiment) -> list[Fault]:
    active = tensor_active_gpus(world_size, experiment.H)
    if experiment.option("activations") != "sequence_parallel" or experiment.T % active == 0:
        return []
    return [Fault("T", experiment.T, f"sequence parallelism gives each GPU equally many tokens, so T must be a multiple of "
                  f"min(P, H) = {active}; or choose activations = replicated")]


def _buckets_are_asked_for(world_size: int, experiment: Experiment) -> list[Fault]:
    if "bucket_bytes" not in experiment.options or experiment.option("sync") == "bucketed":
        return []
    return [Fault("bucket_bytes", experiment.options["bucket_bytes"], "only sync = bucketed fills buckets; leave it out or ask "
                  "for buckets")]


def _four_tokens_split(world_size: int, experiment: Experiment) -> list[Fault]:
    if len(LOSS_TOKENS) % world_size == 0:
        return []
    return [Fault("P", world_size, f"there are {len(LOSS_TOKENS)} tokens to hand out equally, so P may be 1, 2 or 4")]


def _divisors(width: int) -> str:
    words = [str(divisor) for divisor in range(1, width + 1) if width % divisor == 0]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


_TABLE = (
    StrategySpec("single", "Single process", "none", "The whole model and batch on rank 0; nothing is sent."),
    StrategySpec("data_parallel", "Data parallel", "data",
                 "Each rank has the whole model and its own tokens; one all-reduce sums the gradient.",
                 options=(Choice("sync", "the gradient in one piece, one all-reduce a parameter, or in buckets",
                                 ("flat", "per_parameter", "bucketed")),
                          Range("bucket_bytes", BUCKET_MEANING, 128, 4, DDP_BUCKET_BYTES),
                          ACCUMULATION, SYNC_WHEN, COMM_DTYPE),
                 rules=(_buckets_are_asked_for,)),
    StrategySpec("ddp", "Data parallel (DDP)", "data", "The same through DistributedDataParallel.",
                 library="torch.nn.parallel.DistributedDataParallel",
                 options=(Range("bucket_bytes", BUCKET_MEANING, DDP_BUCKET_BYTES, 4, DDP_BUCKET_BYTES),
                          ACCUMULATION, SYNC_WHEN, COMM_DTYPE)),
    StrategySpec("loss_reduction", "Sum or mean of the loss (DDP)", "data",
                 "One weight and four tokens: DDP's gradient beside that of one process, for a summed loss and for a mean.",
                 library="torch.nn.parallel.DistributedDataParallel",
                 options=(Choice("loss", "over the tokens of a rank", ("sum", "mean")),), rules=(_four_tokens_split,)),
    StrategySpec("tensor_parallel", "Tensor parallel", "tensor",
                 "Each layer is split over the GPUs and combined, forward and backward.", rules=(_width_splits,)),
    StrategySpec("tensor_megatron", "Tensor parallel (Megatron pair)", "tensor",
                 "A column split and a row split share one all-reduce forward and one backward.",
                 options=(Choice("activations", "between pairs every GPU has all tokens, or only its own",
                                 ("replicated", "sequence_parallel")),
                          Choice("collectives", "the library's, or our ring from send and receive", ("library", "ring"))),
                 rules=(_layers_pair_up, _width_splits, _tokens_split)),
    StrategySpec("tensor_dtensor", "Tensor parallel (DTensor)", "tensor", "The same pair through DTensor.",
                 library="torch.distributed.tensor", rules=(_layers_pair_up, _width_divides_exactly)),
    StrategySpec("megatron_core", "Tensor parallel (Megatron-Core)", "tensor",
                 "The same pair from Megatron-Core's own column-split and row-split layers.",
                 library="megatron.core.tensor_parallel", rules=(_layers_pair_up, _width_divides_exactly),
                 requires=Requirement("megatron.core", extra="megatron")),
    StrategySpec("pipeline_gpipe", "Pipeline parallel", "pipeline",
                 "Layers in stages; all forwards, then all backwards; neighbours hand over activations.",
                 uses_micro_batches=True),
    StrategySpec("pipeline_1f1b", "Pipeline parallel (1F1B)", "pipeline",
                 "The same hand-overs, one forward then one backward in turn.", uses_micro_batches=True),
    StrategySpec("pipeline_torch", "Pipeline parallel (torch)", "pipeline", "The same through torch's own schedules.",
                 library="torch.distributed.pipelining", uses_micro_batches=True,
                 options=(Choice("schedule", "the library's schedule", ("gpipe", "1f1b")),), rules=(_enough_micro_batches,)),
    StrategySpec("ring_all_reduce", "Ring all-reduce", "none",
                 "One collective on one buffer, written by hand or called in the library.",
                 options=(Choice("collective", "which collective", COLLECTIVES),
                          Choice("implementation", "ours from send and receive, or the library's", IMPLEMENTATIONS),
                          ELEMENTS, CALLS)),
)
STRATEGY_SPECS: dict[str, StrategySpec] = {strategy.name: strategy for strategy in _TABLE}


def experiment_faults(world_size: int, experiment: Experiment, limits: tuple[Range, ...] = (L, H, T, M)) -> list[Fault]:
    """Every reason why this experiment cannot run on `world_size` ranks; empty when it can."""
    strategy = STRATEGY_SPECS.get(experiment.strategy)
    if strategy is None:
        return [Fault("strategy", experiment.strategy, f"unknown; choose one of {', '.join(STRATEGY_SPECS)}")]
    faults = [fault for limit in limits for fault in _range_faults(limit, getattr(experiment, limit.name))]
    faults += _option_faults(strategy, experiment.options)
    if experiment.m > 1 and not strategy.uses_micro_batches:
        faults.append(Fault("m", experiment.m, f"{strategy.name} has no micro-batches, so m must be 1"))
    if faults or world_size < 1:
        return faults
    return [fault for rule in strategy.rules for fault in rule(world_size, experiment)]


def prediction_faults(world_size: int, experiment: Experiment) -> list[Fault]:
    """Why not even a formula speaks of this setting. Wider than what runs here: real models and clusters are let in."""
    limits = tuple(Range(limit.name, limit.meaning, limit.default, limit.minimum, LARGEST_PREDICTED) for limit in (L, H, T, M))
    faults = _range_faults(Range(P.name, P.meaning, P.default, 1, LARGEST_PREDICTED_WORLD), world_size)
    return faults + experiment_faults(world_size, experiment, limits)


def world_size_faults(world_size: int, max_world_size: int = MAX_WORLD_SIZE) -> list[Fault]:
    """Why a run cannot have this many ranks on this installation; empty when it can."""
    return _range_faults(Range(P.name, P.meaning, P.default, P.minimum, max_world_size), world_size)


def run_faults(spec: RunSpec, max_world_size: int = MAX_WORLD_SIZE) -> list[Fault]:
    """Every reason why this run is refused; empty when it may start."""
    faults = world_size_faults(spec.P, max_world_size)
    if not spec.experiments:
        faults.append(Fault("experiments", 0, "name at least one strategy"))
    for experiment in spec.experiments:
        found = experiment_faults(spec.P, experiment)
        faults += found or installation_faults(experiment) + _counting_faults(spec, experiment)
    return faults


def is_installed(strategy: str) -> bool:
    """Whether this installation has what the strategy needs beyond torch."""
    requires = STRATEGY_SPECS[strategy].requires
    return requires is None or requires.is_installed()


def installation_faults(experiment: Experiment) -> list[Fault]:
    """Why this installation cannot run a strategy that others can: what it lacks, and how to get it."""
    requires = STRATEGY_SPECS[experiment.strategy].requires
    if requires is None or requires.is_installed():
        return []
    return [Fault("strategy", experiment.strategy, f"{requires.module} is not installed here: install worldsize with its extra "
                  f"'{requires.extra}', such as pip install 'worldsize[{requires.extra}]'")]


def _counting_faults(spec: RunSpec, experiment: Experiment) -> list[Fault]:
    """A buffer so long that payload could not be told from headers."""
    elements, most = experiment.options.get("elements", 0), COUNTED_ELEMENTS_PER_RANK * max(1, spec.P)
    if spec.purpose != "counting" or not isinstance(elements, int) or elements <= most:
        return []
    return [Fault("elements", elements, f"bytes can be counted exactly up to {most} elements on {spec.P} ranks; beyond, gloo "
                  "cuts a buffer into more messages in fp64 than in fp32 (a timing run may be larger)")]


def _range_faults(limit: Range, value: object) -> list[Fault]:
    if isinstance(value, int) and not isinstance(value, bool) and limit.minimum <= value <= limit.maximum:
        return []
    shown = value if isinstance(value, (str, int, bool)) else repr(value)
    return [Fault(limit.name, shown, f"must be a whole number from {limit.minimum} to {limit.maximum}")]


def _option_faults(strategy: StrategySpec, options: Mapping[str, OptionValue]) -> list[Fault]:
    declared = {option.name: option for option in strategy.options}
    faults: list[Fault] = []
    for name, value in options.items():
        option = declared.get(name)
        if option is None:
            known = f"its options are {', '.join(declared)}" if declared else "it has no options"
            faults.append(Fault(name, value, f"{strategy.name} does not take it; {known}"))
        elif isinstance(option, Range):
            faults += _range_faults(option, value)
        elif value not in option.values:
            faults.append(Fault(name, value, f"must be one of {', '.join(option.values)}"))
    return faults


@dataclass(frozen=True)
class Environment:
    """Where a run took place: what a reader needs to repeat it. Versions as the packages print them."""

    torch: str
    python: str
    backend: str  # gloo or nccl
    transport: str  # "loopback TCP"; for NCCL what the counting run forced
    launcher: str  # "launch host" or "torchrun"
    platform: str
    cpu_count: int
    gpu_count: int
    started_at: str  # ISO 8601, UTC


@dataclass(frozen=True)
class Interval:
    """Something a rank did in the last measured step, in seconds since the first event of any rank (monotonic clock)."""

    rank: int
    name: str
    start_seconds: float
    end_seconds: float


@dataclass(frozen=True)
class MemoryReport:
    """Bytes one rank holds: distinct storages counted once; saved: tensors kept for backward at their peak sum."""

    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    saved_for_backward_bytes: int


@dataclass(frozen=True)
class ExperimentReport:
    """What was measured. Lists are by rank; a matrix has senders as rows, receivers as columns. All bytes, at `dtype`.

    Payload comes from the socket counters of two runs, wire(fp64) - wire(fp32), never from the calls (where gradients travel
    in bf16, from wire(fp32) - wire(bf16), and `dtype` is bf16). Where sockets
    cannot be read it is None, `calls_payload_bytes_by_rank` stands in, and `note` says why.
    """

    experiment: Experiment
    dtype: str
    settled: bool  # every window closed: what one end sent, the other had received
    repetitions: int  # readings taken, of the run (fp32 or fp64) that agreed least
    agreeing: int  # how many of them are equal to the most frequent one
    payload_matrix: tuple[tuple[int, ...], ...] | None
    wire_matrix: tuple[tuple[int, ...], ...] | None
    calls_payload_bytes_by_rank: tuple[int, ...] | None  # None: the library bypasses kernels.comm
    calls_by_rank: tuple[Mapping[str, int], ...] | None
    memory_by_rank: tuple[MemoryReport, ...]
    timeline: tuple[Interval, ...]
    step_seconds: float  # median over the repetitions of the slowest rank's step
    weights_max_difference: float  # largest |weight - weight of `single`| over all ranks, after the same steps
    weights_tolerance: float
    note: str = ""
    values: Mapping[str, float] = field(default_factory=dict)  # what else a strategy measured, by name, as rank 0 saw it

    @property
    def payload_bytes_by_rank(self) -> tuple[int, ...] | None:
        """Bytes of payload each rank sent."""
        return None if self.payload_matrix is None else tuple(sum(row) for row in self.payload_matrix)

    @property
    def wire_bytes_by_rank(self) -> tuple[int, ...] | None:
        """Bytes each rank sent, protocol headers included, resends not."""
        return None if self.wire_matrix is None else tuple(sum(row) for row in self.wire_matrix)


@dataclass(frozen=True)
class RunReport:
    """All experiments of one launch, in the order asked for. `timings` in seconds: join, then one entry a phase."""

    P: int
    experiments: tuple[ExperimentReport, ...]
    environment: Environment
    timings: Mapping[str, float]


def to_json(value: RunSpec | RunReport | Experiment) -> dict[str, Any]:
    """Plain dicts and lists, ready for json.dumps."""
    return asdict(value)


def experiment_from_json(data: Mapping[str, Any]) -> Experiment:
    """Raises TypeError on a key that an experiment does not have."""
    return Experiment(**data)


def spec_from_json(data: Mapping[str, Any]) -> RunSpec:
    """Raises TypeError on a key that a spec does not have, KeyError where P or experiments is missing."""
    given = dict(data)
    experiments = tuple(experiment_from_json(item) for item in given.pop("experiments"))
    return RunSpec(P=given.pop("P"), experiments=experiments, **given)


def report_from_json(data: Mapping[str, Any]) -> RunReport:
    """The inverse of `to_json` for a report."""
    return RunReport(
        P=data["P"],
        experiments=tuple(_experiment_report(item) for item in data["experiments"]),
        environment=Environment(**data["environment"]),
        timings=dict(data["timings"]),
    )


def _experiment_report(data: Mapping[str, Any]) -> ExperimentReport:
    given = dict(data)
    given["experiment"] = experiment_from_json(given["experiment"])
    for name in ("payload_matrix", "wire_matrix"):
        given[name] = None if given[name] is None else tuple(tuple(row) for row in given[name])
    for name in ("calls_payload_bytes_by_rank", "calls_by_rank"):
        given[name] = None if given[name] is None else tuple(given[name])
    given["memory_by_rank"] = tuple(MemoryReport(**item) for item in given["memory_by_rank"])
    given["timeline"] = tuple(Interval(**item) for item in given["timeline"])
    return ExperimentReport(**given)


def add_experiment_arguments(parser: argparse.ArgumentParser) -> None:
    """-P -L -H -T -m and every option of every strategy, for `worldsize` and `kernels.train` alike."""
    for symbol in (P, L, H, T, M):
        parser.add_argument(f"-{symbol.name}", type=int, default=symbol.default, metavar="N",
                            help=f"{symbol.meaning} (default {symbol.default})")
    options = {option.name: option for strategy in STRATEGY_SPECS.values() for option in strategy.options}
    for option in options.values():
        if isinstance(option, Range):
            parser.add_argument(f"--{option.name}", type=int, metavar="N", help=option.meaning)
        else:
            parser.add_argument(f"--{option.name}", metavar="{" + ",".join(option.values) + "}", help=option.meaning)


def experiment_from_arguments(strategy: str, given: argparse.Namespace) -> Experiment:
    """What was typed, unchecked: options of other strategies stay in, so that `experiment_faults` names them."""
    names = {option.name for declared in STRATEGY_SPECS.values() for option in declared.options}
    options = {name: getattr(given, name) for name in sorted(names) if getattr(given, name) is not None}
    return Experiment(strategy, L=given.L, H=given.H, T=given.T, m=given.m, options=options)


def experiment_arguments(world_size: int, experiment: Experiment) -> list[str]:
    """The inverse, as `kernels.train` and `worldsize measure` take it; the strategy itself is left to the caller."""
    words = ["-P", str(world_size)]
    for name in ("L", "H", "T", "m"):
        words += [f"-{name}", str(getattr(experiment, name))]
    for name, value in experiment.options.items():
        words += [f"--{name}", str(value)]
    return words
