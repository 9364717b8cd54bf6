"""worldsize ...: one small function a command; each prints what a room returns. Exit status 2 says the input was at fault.

Rooms that take long to load (settings, lessons, servers) are imported by the commands that need them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NoReturn

from app import published, terminal, texts
from app.errors import AppError, RunEnded, RunRejected, SettingsRefused
from app.runs import results, verification, verify
from app.runs.launch import LocalLauncher
from app.theory import FORMULAS, evaluate
from app.theory.formula import Number, read_argument
from kernels.spec import (
    STRATEGY_SPECS,
    RunSpec,
    add_experiment_arguments,
    experiment_from_arguments,
    prediction_faults,
    run_faults,
    whole_number,
)

if TYPE_CHECKING:
    from app.settings import Settings

HELD, MISSED, MISUSED = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    terminal.speak_any_encoding()
    words = sys.argv[1:] if arguments is None else arguments
    given = _parser(words).parse_args(words)
    command: Callable[[argparse.Namespace], int] = given.command
    try:
        return command(given)
    except (RunRejected, SettingsRefused, _Misused) as misused:
        print(f"worldsize: {misused}", file=sys.stderr)
        return MISUSED
    except AppError as error:
        print(f"worldsize: {error}", file=sys.stderr)
        return MISSED
    except BrokenPipeError:  # whoever read the output, such as head, has seen enough
        _write_no_more()
        return MISSED


def _write_no_more() -> None:
    """Output goes nowhere from now on, or Python would complain once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Misused(Exception):
    """What was typed cannot be used; the message says what can."""


def predict(given: argparse.Namespace) -> int:
    """What the formula gives, and what this backend will send."""
    experiment = experiment_from_arguments(given.strategy, given)
    _refuse(prediction_faults(given.P, experiment))
    try:
        result = results.predicted(given.P, experiment, given.backend)
    except ValueError as error:
        raise _Misused(str(error)) from error
    _print(given, results.result_json(result), texts.prediction(result))
    return HELD


def measure(given: argparse.Namespace) -> int:
    """A real run beside its prediction."""
    settings = _settings(given)
    experiment = experiment_from_arguments(given.strategy, given)
    spec = RunSpec(P=given.P, experiments=(experiment,), time_limit_seconds=settings.run_seconds)
    _refuse(run_faults(spec, settings.max_world_size))
    try:
        with _progress() as progress, LocalLauncher() as launcher:
            report = launcher.run(spec, on_event=lambda event: progress.show(texts.progress(event)))
    except RunEnded as ended:
        raise _failure(ended) from ended
    result = results.compare(report)[0]
    _print(given, results.result_json(result), texts.measurement(result))
    return HELD if result.holds else MISSED


@contextmanager
def _progress() -> Iterator[terminal.Progress]:
    """A progress line while processes run. Ctrl-C ends them all, and then it is a failure that says what was going on."""
    progress = terminal.Progress()
    progress.show("starting torch")
    try:
        yield progress
    except KeyboardInterrupt as interrupted:
        raise AppError(f"Stopped by Ctrl-C while {progress.latest}: no verdict. Nothing is left running.") from interrupted
    finally:
        progress.clear()


def _failure(ended: RunEnded) -> AppError:
    """The same error with the end of the rank's log under it."""
    log = f"\nThe last lines it wrote:\n{ended.log_tail}" if ended.log_tail else ""
    return AppError(f"{ended.message}{log}")


def verify_all(given: argparse.Namespace) -> int:
    """Published figures, then every strategy over the grid of settings; a summary is kept for the ledger."""
    settings, began = _settings(given), time.monotonic()
    checks = published.check_all()
    largest = settings.max_world_size
    cells: list[verify.Cell] = []
    with _progress() as progress, LocalLauncher() as launcher:
        for world_size in range(1, largest + 1):
            experiments = verify.grid(world_size)
            if given.quick:
                experiments = verify.quick(experiments, given.seed, world_size)
            cells += verify.verify_world(
                launcher, world_size, experiments,
                lambda done, total, size=world_size: progress.show(  # type: ignore[misc]
                    f"measuring setting {done + 1} of {total} at P = {size}"),
            )
    rows = verify.summary(cells)
    figures = [check for topic in checks.values() for check in topic]
    summary = verification.summarise(
        rows, cells, published=len(figures), published_held=sum(check.holds for check in figures), quick=given.quick,
        largest=largest, seconds=time.monotonic() - began)
    verification.store(settings.data_dir, summary)  # first: whoever reads the output may stop reading
    _print(given, texts.verification_json(checks, rows, cells, summary.holds), texts.verification(checks, rows, cells))
    return HELD if summary.holds else MISSED


def check(given: argparse.Namespace) -> int:
    """All faults of the lessons at once."""
    from app.course import check_course  # Markdown and MathML are not for every command to load

    faults = check_course(_settings(given).course_dirs)
    text = "\n".join(str(fault) for fault in faults) or "No faults."
    _print(given, [asdict(fault) for fault in faults], text if not faults else f"{text}\n\n{len(faults)} faults.")
    return MISSED if faults else HELD


def web(given: argparse.Namespace) -> int:
    """The web process alone."""
    from app.serve import run_web

    run_web(_settings(given))
    return HELD


def worker(given: argparse.Namespace) -> int:
    """The worker alone: it carries out runs that a web process has queued."""
    from app.runs.worker import run_worker
    from app.web.logs import configure_logs

    configure_logs()
    run_worker(_settings(given))
    return HELD


def serve(given: argparse.Namespace) -> int:
    """Web and worker together."""
    from app import supervisor

    settings = _settings(given)
    print(f"World Size on http://{settings.host}:{settings.port} (Ctrl-C ends it)", file=sys.stderr)
    return supervisor.serve(settings)


def _settings(given: argparse.Namespace) -> Settings:
    """The environment's settings, with the flags that were given."""
    from app.settings import Settings

    return Settings.load(**{name: value for name, value in vars(given).items() if name in Settings.model_fields})


def formula(given: argparse.Namespace) -> int:
    """One formula at given values; without a name, the list of them."""
    if given.name is None:
        _print(given, [texts.formula_json(one) for one in FORMULAS.values()], texts.formula_list())
        return HELD
    if given.name not in FORMULAS:
        raise _Misused(f"formula = {given.name}: unknown; 'worldsize formula' lists all {len(FORMULAS)}")
    chosen = FORMULAS[given.name]
    values = _assignments(given.values)
    if not values and chosen.symbols:
        _print(given, texts.formula_json(chosen), texts.formula_card(chosen))
        return HELD
    try:
        value = evaluate(given.name, values)
    except ValueError as error:
        raise _Misused(str(error)) from error
    read = {name: one if isinstance(one, str) else texts.plain(one) for name, one in values.items()}
    data = {**texts.formula_json(chosen), "given": read, "value": texts.plain(value)}
    _print(given, data, texts.formula_value(chosen, value))
    return HELD


def _assignments(words: Sequence[str]) -> dict[str, Number | str]:
    values: dict[str, Number | str] = {}
    for word in words:
        key, _, text = word.partition("=")
        if not key or not text:
            raise _Misused(f"{word}: write values as key=value, such as P=4")
        if key in values:
            raise _Misused(f"{word}: {key} is given twice")
        values[key] = read_argument(text)
        if values[key] in (math.inf, -math.inf):
            raise _Misused(f"{key} = {text if len(text) < 40 else f'{text[:36]}...'}: larger than can be reckoned with")
    return values


def _refuse(faults: Sequence[Any]) -> None:
    if faults:
        raise RunRejected(faults)


def _print(given: argparse.Namespace, data: Any, text: str) -> None:
    only_ascii = not (sys.stdout.encoding or "").lower().startswith("utf")
    try:
        print(json.dumps(data, indent=2, ensure_ascii=only_ascii) if given.json else text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        _write_no_more()
        raise AppError(f"The output could not be written: {error.strerror}.") from error


class _Parser(argparse.ArgumentParser):
    """What is wrong in one line, instead of below the whole usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(MISUSED, f"{self.prog}: {message}\nAll it takes: {self.prog} --help\n")


Arguments = Callable[[argparse.ArgumentParser], None]


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """All commands, and of the one that was typed its arguments: those of the servers take a quarter of a second to load."""
    parser = _Parser(prog="worldsize", description="What distributed training sends: predicted and measured.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], summary: str, *arguments: Arguments) -> None:
        added = commands.add_parser(name, help=summary, description=summary)
        added.set_defaults(command=run)
        for add in arguments if name in words else ():
            add(added)

    command("predict", predict, "What a strategy sends in one step, by its formula.", _strategy, _backend, _json)
    command("measure", measure, "Run a strategy for real and compare; exit status 1 unless equal.", _strategy, _limits, _json)
    command("verify", verify_all, "Every formula: published figures and real runs; exit status 1 on a miss.", _part, _json)
    command("check", check, "Lint the lessons: numbers, answers, links, figures, sources.", _content, _json)
    command("serve", serve, "Serve the course: the pages and a worker for real runs.", _all_settings)
    command("web", web, "The pages alone.", _all_settings)
    command("worker", worker, "A worker alone.", _all_settings)
    command("formula", formula, "Evaluate a formula; without a name, list them; without values, show its card.",
            _formula, _json)
    return parser


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _strategy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("strategy", metavar="STRATEGY", help=", ".join(STRATEGY_SPECS))
    add_experiment_arguments(parser)


def _backend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--backend", default=results.DEFAULT_BACKEND, help="gloo or nccl (default gloo)")


def _limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--run-seconds", metavar="S", help="time limit (default 60)")
    parser.add_argument("--max-world-size", metavar="N", help="largest P that may run here")


def _part(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="a part of the grid, at most two minutes")
    parser.add_argument("--seed", type=whole_number, metavar="N", default=0, help="which part (default 0)")
    parser.add_argument("--max-world-size", metavar="N", help="largest P to run")


def _formula(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("values", nargs="*", metavar="key=value")


def _content(parser: argparse.ArgumentParser) -> None:
    _add_settings(parser, "content_dirs")


def _all_settings(parser: argparse.ArgumentParser) -> None:
    from app.settings import Settings

    _add_settings(parser, *Settings.model_fields)


def _add_settings(parser: argparse.ArgumentParser, *fields: str) -> None:
    """A flag for each setting; what is given is read by Settings, exactly as the environment is."""
    from app.settings import Settings

    for field in fields:
        about = Settings.model_fields[field]
        parser.add_argument(f"--{field.replace('_', '-')}", metavar="VALUE", help=f"{about.title}: {about.description}")
