"""Why something may not run, or not even be predicted: every fault names the field, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kernels.spec.experiment import (
    BACKENDS,
    COUNTED_ELEMENTS_PER_RANK,
    LARGEST_PREDICTED,
    LARGEST_PREDICTED_OPTION,
    LARGEST_PREDICTED_WORLD,
    LONGEST_RUN_SECONDS,
    MAX_WORLD_SIZE,
    PURPOSES,
    REPETITIONS,
    STRATEGY_SPECS,
    TIMING_REPETITIONS,
    WARMUP_STEPS,
    Experiment,
    Fault,
    H,
    L,
    M,
    OptionValue,
    P,
    Range,
    RunSpec,
    StrategySpec,
    T,
)

OfOptions = Callable[[StrategySpec, Mapping[str, OptionValue]], list[Fault]]


def experiment_faults(world_size: int, experiment: Experiment) -> list[Fault]:
    """Every reason why this experiment cannot run on `world_size` ranks; empty when it can."""
    return _experiment_faults(world_size, experiment, (L, H, T, M), option_faults)


def _experiment_faults(
    world_size: int, experiment: Experiment, limits: tuple[Range, ...], of_options: OfOptions
) -> list[Fault]:
    strategy = STRATEGY_SPECS.get(experiment.strategy)
    if strategy is None:
        return [Fault("strategy", experiment.strategy, f"unknown; choose one of {', '.join(STRATEGY_SPECS)}")]
    faults = [fault for limit in limits for fault in _range_faults(limit, getattr(experiment, limit.name))]
    faults += of_options(strategy, experiment.options)
    if experiment.m > 1 and not strategy.uses_micro_batches:
        faults.append(Fault("m", experiment.m, f"{strategy.name} has no micro-batches, so m must be 1"))
    if faults or world_size < 1:
        return faults
    return [fault for rule in strategy.rules for fault in rule(world_size, experiment)]


def prediction_faults(world_size: int, experiment: Experiment) -> list[Fault]:
    """Why not even a formula speaks of this setting. Wider than what runs here: real models and clusters are let in."""
    limits = tuple(replace(limit, maximum=LARGEST_PREDICTED) for limit in (L, H, T, M))
    faults = _range_faults(replace(P, maximum=LARGEST_PREDICTED_WORLD), world_size)
    return faults + _experiment_faults(world_size, experiment, limits, predicted_option_faults)


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
    return faults + _launch_faults(spec)


def _launch_faults(spec: RunSpec) -> list[Fault]:
    """What is wrong with the launch itself, whatever is measured in it."""
    faults = _range_faults(TIMING_REPETITIONS if spec.purpose == "timing" else REPETITIONS, spec.repetitions)
    faults += _range_faults(WARMUP_STEPS, spec.warmup_steps)
    faults += _word_faults("purpose", spec.purpose, PURPOSES) + _word_faults("backend", spec.backend, BACKENDS)
    limit = spec.time_limit_seconds
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit <= LONGEST_RUN_SECONDS:
        faults.append(Fault("time_limit_seconds", _shown(limit), f"must be above 0, at most {LONGEST_RUN_SECONDS:.0f}"))
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
    return [Fault(limit.name, _shown(value), f"must be a whole number from {limit.minimum} to {limit.maximum}")]


def _word_faults(name: str, value: object, allowed: tuple[str, ...]) -> list[Fault]:
    return [] if value in allowed else [Fault(name, _shown(value), f"must be one of {', '.join(allowed)}")]


def _shown(value: object) -> OptionValue:
    return value if isinstance(value, str | int) else repr(value)


def predicted_option_faults(strategy: StrategySpec, options: Mapping[str, OptionValue]) -> list[Fault]:
    """Names and words as declared; a number's upper limit belongs to runs, not to predictions."""
    wider = [replace(option, maximum=LARGEST_PREDICTED_OPTION) if isinstance(option, Range) else option
             for option in strategy.options]
    return option_faults(replace(strategy, options=tuple(wider)), options)


def option_faults(strategy: StrategySpec, options: Mapping[str, OptionValue]) -> list[Fault]:
    """Why a run of this strategy cannot take these options."""
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
