"""The contract between app and kernels: RunSpec in, RunReport out, both JSON. Standard library only.

What may be asked for stands here as data (`STRATEGY_SPECS`): the command line, the forms and the ledger read it,
`kernels.strategies.STRATEGIES` maps the same names to code, and a test holds the two equal.

Symbols, the same in every room: P world size, L layers, H hidden width, T tokens of one micro-batch on one replica,
m micro-batches of a pipeline step.
"""

from __future__ import annotations

from kernels.spec import strategies  # fills STRATEGY_SPECS
from kernels.spec.arguments import (
    add_experiment_arguments,
    experiment_arguments,
    experiment_from_arguments,
    flag,
    whole_number,
)
from kernels.spec.experiment import (
    BYTES_PER_ELEMENT,
    COLLECTIVES,
    COUNTED_ELEMENTS_PER_RANK,
    ELEMENTS,
    IMPLEMENTATIONS,
    LOSS_TOKENS,
    MAX_WORLD_SIZE,
    STRATEGY_SPECS,
    Choice,
    Experiment,
    Fault,
    H,
    L,
    M,
    OptionValue,
    P,
    Range,
    Requirement,
    RunSpec,
    StrategySpec,
    T,
    pipeline_stages,
    tensor_active_gpus,
)
from kernels.spec.faults import (
    experiment_faults,
    installation_faults,
    is_installed,
    prediction_faults,
    run_faults,
    world_size_faults,
)
from kernels.spec.report import (
    Environment,
    ExperimentReport,
    Interval,
    MemoryReport,
    RunReport,
    report_from_json,
    spec_from_json,
    to_json,
)

__all__ = [
    "BYTES_PER_ELEMENT",
    "COLLECTIVES",
    "COUNTED_ELEMENTS_PER_RANK",
    "ELEMENTS",
    "IMPLEMENTATIONS",
    "LOSS_TOKENS",
    "MAX_WORLD_SIZE",
    "STRATEGY_SPECS",
    "Choice",
    "Environment",
    "Experiment",
    "ExperimentReport",
    "Fault",
    "H",
    "Interval",
    "L",
    "M",
    "MemoryReport",
    "OptionValue",
    "P",
    "Range",
    "Requirement",
    "RunReport",
    "RunSpec",
    "StrategySpec",
    "T",
    "add_experiment_arguments",
    "experiment_arguments",
    "experiment_faults",
    "experiment_from_arguments",
    "flag",
    "installation_faults",
    "is_installed",
    "pipeline_stages",
    "prediction_faults",
    "report_from_json",
    "run_faults",
    "spec_from_json",
    "strategies",
    "tensor_active_gpus",
    "to_json",
    "whole_number",
    "world_size_faults",
]
