"""An experiment as words on a command line, both ways; `worldsize` and `kernels.train` take the same."""

from __future__ import annotations

import argparse

from kernels.spec.experiment import STRATEGY_SPECS, Experiment, H, L, M, P, Range, T


def add_experiment_arguments(parser: argparse.ArgumentParser) -> None:
    """-P -L -H -T -m and every option of every strategy, for `worldsize` and `kernels.train` alike."""
    for symbol in (P, L, H, T, M):
        parser.add_argument(f"-{symbol.name}", type=whole_number, default=symbol.default, metavar="N",
                            help=f"{symbol.meaning} (default {symbol.default})")
    options = {option.name: option for strategy in STRATEGY_SPECS.values() for option in strategy.options}
    for option in options.values():
        if isinstance(option, Range):
            parser.add_argument(flag(option.name), type=whole_number, metavar="N", help=option.meaning)
        else:
            parser.add_argument(flag(option.name), metavar="{" + ",".join(option.values) + "}", help=option.meaning)
        if flag(option.name) != (as_in_json := f"--{option.name}"):  # understood as well, and not shown
            parser.add_argument(as_in_json, type=whole_number if isinstance(option, Range) else str, dest=option.name,
                                default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def whole_number(text: str) -> int:
    """What was typed as a number; argparse says the message after the name of the flag."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text if len(text) < 40 else text[:36] + '...'} is no whole number") from None


def flag(name: str) -> str:
    """How an option is spelled in a shell: --bucket-bytes for bucket_bytes."""
    return f"--{name.replace('_', '-')}"


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
        words += [flag(name), str(value)]
    return words
