"""Every strategy: what it is called, what it takes, and where it cannot run."""

from __future__ import annotations

from kernels.schedule import DDP_BUCKET_BYTES
from kernels.spec.experiment import (
    ACCUMULATION,
    BUCKET_MEANING,
    CALLS,
    COLLECTIVES,
    COMM_DTYPE,
    ELEMENTS,
    IMPLEMENTATIONS,
    LOSS_TOKENS,
    STRATEGY_SPECS,
    SYNC_WHEN,
    Choice,
    Experiment,
    Fault,
    Range,
    Requirement,
    StrategySpec,
    pipeline_stages,
    tensor_active_gpus,
)


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
    return [Fault("m", experiment.m, f"torch’s 1F1B wants at least one micro-batch a stage: m must be {stages} or more, "
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
                 "One weight and four tokens: DDP’s gradient beside that of one process, for a summed loss and for a mean.",
                 library="torch.nn.parallel.DistributedDataParallel",
                 options=(Choice("loss", "over the tokens of a rank", ("sum", "mean")),), rules=(_four_tokens_split,)),
    StrategySpec("tensor_parallel", "Tensor parallel", "tensor",
                 "Each layer is split over the GPUs and combined, forward and backward.", rules=(_width_splits,)),
    StrategySpec("tensor_megatron", "Tensor parallel (Megatron pair)", "tensor",
                 "A column split and a row split share one all-reduce forward and one backward.",
                 options=(Choice("activations", "between pairs every GPU has all tokens, or only its own",
                                 ("replicated", "sequence_parallel")),
                          Choice("collectives", "the library’s, or our ring from send and receive", ("library", "ring"))),
                 rules=(_layers_pair_up, _width_splits, _tokens_split)),
    StrategySpec("tensor_dtensor", "Tensor parallel (DTensor)", "tensor", "The same pair through DTensor.",
                 library="torch.distributed.tensor", rules=(_layers_pair_up, _width_divides_exactly)),
    StrategySpec("megatron_core", "Tensor parallel (Megatron-Core)", "tensor",
                 "The same pair from Megatron-Core’s own column-split and row-split layers.",
                 library="megatron.core.tensor_parallel", rules=(_layers_pair_up, _width_divides_exactly),
                 requires=Requirement("megatron.core", extra="megatron")),
    StrategySpec("pipeline_gpipe", "Pipeline parallel", "pipeline",
                 "Layers in stages; all forwards, then all backwards; neighbours hand over activations.",
                 uses_micro_batches=True),
    StrategySpec("pipeline_1f1b", "Pipeline parallel (1F1B)", "pipeline",
                 "The same hand-overs, one forward then one backward in turn.", uses_micro_batches=True),
    StrategySpec("pipeline_torch", "Pipeline parallel (torch)", "pipeline", "The same through torch’s own schedules.",
                 library="torch.distributed.pipelining", uses_micro_batches=True,
                 options=(Choice("schedule", "the library’s schedule", ("gpipe", "1f1b")),), rules=(_enough_micro_batches,)),
    StrategySpec("ring_all_reduce", "Ring all-reduce", "none",
                 "One collective on one buffer, written by hand or called in the library.",
                 options=(Choice("collective", "which collective", COLLECTIVES),
                          Choice("implementation", "ours from send and receive, or the library’s", IMPLEMENTATIONS),
                          ELEMENTS, CALLS)),
)
STRATEGY_SPECS.update({strategy.name: strategy for strategy in _TABLE})
