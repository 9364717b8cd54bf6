"""What lesson.yaml declares besides questions: sources, predictions, experiments with their recorded runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from app.course.compose import Composer
from app.course.draft import Draft
from app.course.expression import Value
from app.course.model import AXES, Experiment, Prediction, PredictionOption, Source, is_report_of
from app.course.numerals import typed_numerals
from app.course.yaml_file import Fields
from kernels import spec

RECORDED = "recorded.json"
COUNTING, TIMING = "counting", "timing"
LEAST_TIMED = 2


def identifier(draft: Draft, fields: Fields, kind: str) -> str:
    """The id, declared to the draft; empty, and a fault, where it cannot be one."""
    name = fields.string("id")
    if name and not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        fields.fault("id", f"{name!r} cannot be an id.", "Use small letters, digits and single hyphens.")
        return ""
    if name:
        item = fields.get("id")
        draft.declare(kind, name, fields.file_name, item.line if item else fields.item.line, f"{fields.item.key}.id")
    return name


def read_sources(draft: Draft, fields: Fields) -> tuple[Source, ...]:
    sources: list[Source] = []
    for entry in fields.mappings("sources"):
        entry.allow("id", "short", "text", "url")
        name = identifier(draft, entry, "source")
        url = entry.string("url")
        if url and not re.fullmatch(r"https?://[^\s\"'<>]+\.[^\s\"'<>]+", url):
            entry.fault("url", f"{url!r} is no web address.", "Write it in full, from https:// on.")
        sources.append(Source(name, entry.string("short"), entry.string("text"), url))
    return tuple(sources)


def read_predictions(draft: Draft, fields: Fields) -> tuple[Prediction, ...]:
    predictions: list[Prediction] = []
    for entry in fields.mappings("predictions", required=False):
        entry.allow("id", "prompt", "options")
        name = identifier(draft, entry, "prediction")
        options = tuple(_prediction_option(draft, option) for option in entry.mappings("options"))
        values = [option.value for option in options]
        if len(options) < 2 or len(set(values)) < len(values):
            entry.fault("options", "a prediction needs two options or more, each with a value of its own.",
                        "Add or rename options.")
        predictions.append(Prediction(name, text_html(draft, entry, "prompt"), options))
    return tuple(predictions)


def _prediction_option(draft: Draft, fields: Fields) -> PredictionOption:
    fields.allow("value", "axis", "label", "text", "recall")
    axis = fields.string("axis", required=False) or None
    if axis not in (None, *AXES):
        fields.fault("axis", f"there is no axis {axis!r}.", f"Write one of {', '.join(AXES)}, or leave it out.")
    return PredictionOption(fields.string("value"), axis, plain_text(draft, fields, "label"), text_html(draft, fields, "text"),
                            text_html(draft, fields, "recall"))


def text_html(draft: Draft, fields: Fields, name: str, *, required: bool = True) -> str:
    """One paragraph of the file, composed at the lesson's numbers."""
    item = fields.text(name, required=required)
    return "" if item is None else Composer(draft, fields.file_name, item.key).html(str(item.value), item.text_line)


def plain_text(draft: Draft, fields: Fields, name: str) -> str:
    """A few words without markup, such as a title. Numbers cannot be computed in them, so none may stand there."""
    text = fields.string(name)
    for numeral in typed_numerals(text):
        fields.fault(name, f"the number {numeral} is typed by hand.", "Say it in the text below, where numbers are computed.")
    return text


def texts_html(draft: Draft, fields: Fields, name: str) -> tuple[str, ...]:
    """A list of such paragraphs."""
    return tuple(
        Composer(draft, fields.file_name, item.key).html(str(item.value), item.text_line) for item in fields.strings(name)
    )


def read_experiments(draft: Draft, fields: Fields, folder: Path) -> tuple[Experiment, ...]:
    return tuple(_experiment(draft, entry, folder) for entry in fields.mappings("experiments", required=False))


def _experiment(draft: Draft, fields: Fields, folder: Path) -> Experiment:
    fields.allow("id", "title", "text", "figure", "P", "purpose", "strategies", "recorded")
    name = identifier(draft, fields, "experiment")
    figure = fields.string("figure", required=False) or None
    if figure is not None and figure not in draft.figures:
        fields.fault("figure", f"there is no figure {figure!r}.", f"Known are {', '.join(draft.figures)}.")
    world_size = _whole(fields, "P", int(draft.given.get("P", spec.P.default)))
    entries = list(fields.mappings("strategies"))
    strategies = tuple(_strategy(draft, entry, world_size) for entry in entries)
    labels = tuple(plain_text(draft, entry, "label") if entry.has("label") else "" for entry in entries)
    for fault in spec.world_size_faults(world_size):
        fields.fault("P", f"{fault.field} = {fault.value} cannot run.", f"It {fault.allowed}.")
    title, text = plain_text(draft, fields, "title"), text_html(draft, fields, "text")
    if (purpose := _purpose(fields)) == TIMING:
        _check_timing(fields, world_size, strategies)
    recorded = () if purpose == TIMING else _recorded(fields, folder, strategies)
    return Experiment(name, title, text, figure, world_size, strategies, recorded, labels, purpose)


def _purpose(fields: Fields) -> str:
    """To count bytes, unless the lesson says that time is taken."""
    purpose = fields.string("purpose", required=False) or COUNTING
    if purpose not in (COUNTING, TIMING):
        fields.fault("purpose", f"there is no purpose {purpose!r}.", f"Write {TIMING}, or leave it out to count bytes.")
    return purpose


def _check_timing(fields: Fields, world_size: int, strategies: tuple[spec.Experiment, ...]) -> None:
    """What is fitted is the time of an all-reduce on two ranks or more; its sizes and calls are the run's own."""
    if len(strategies) != 1 or strategies[0].strategy != "ring_all_reduce":
        fields.fault("strategies", "a timing run has one strategy, ring_all_reduce.", "Name it alone.")
    elif strategies[0].options.get("collective", "all_reduce") != "all_reduce":
        fields.fault("strategies", "alpha and B are fitted to an all-reduce.", "Write collective: all_reduce, or leave it out.")
    elif taken := sorted({"elements", "calls"} & set(strategies[0].options)):
        fields.fault("strategies", f"a timing run sets {' and '.join(taken)} itself, over many sizes.", "Take it out.")
    if world_size < LEAST_TIMED:
        fields.fault("P", f"P = {world_size} sends no message whose time could be taken.", f"Let it be {LEAST_TIMED} or more.")
    if fields.has("recorded"):
        fields.fault("recorded", "what was recorded of a timing run belongs to its figure.", "Take the key out.")


def _strategy(draft: Draft, fields: Fields, world_size: int) -> spec.Experiment:
    """One strategy at its values: its own, the lesson's, or the defaults of kernels.spec, in this order."""
    fields.allow("strategy", "label", "L", "H", "T", "m", "options")
    options = fields.mapping("options")
    values = {one.name: _whole(fields, one.name, _given(draft.given, one)) for one in (spec.L, spec.H, spec.T, spec.M)}
    chosen = {} if options is None else {key: _option(item.value) for key, item in options.items()}
    experiment = spec.Experiment(fields.string("strategy"), **values, options=chosen)
    for fault in spec.experiment_faults(world_size, experiment):
        fields.fault(fault.field if fields.has(fault.field) else "strategy", f"{fault.field} = {fault.value} cannot run.",
                     f"{fault.allowed[:1].upper()}{fault.allowed[1:]}.")
    return experiment


def _given(given: Mapping[str, Value], symbol: spec.Range) -> int:
    value = given.get(symbol.name, symbol.default)
    return int(value) if value == int(value) else symbol.default


def _option(value: object) -> spec.OptionValue:
    return value if isinstance(value, (str, int, bool)) else str(value)


def _whole(fields: Fields, name: str, default: int) -> int:
    number = fields.number(name)
    if number is None:
        return default
    if not isinstance(number, int):
        fields.fault(name, f"{name} must be a whole number.", "Write digits only.")
        return default
    return number


def _recorded(fields: Fields, folder: Path, strategies: tuple[spec.Experiment, ...]) -> tuple[Mapping[str, object], ...]:
    """The reports shipped with the lesson. A file that is named must be there; recorded.json is taken where it is there."""
    name = fields.string("recorded", required=False)
    path = folder / (name or RECORDED)
    if not path.is_file():
        if name:
            fields.fault("recorded", f"the file {name} is missing.", "Record it from a real run, or take the key out.")
        return ()
    try:
        reports = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        fields.fault("recorded", f"{path.name} is not JSON: {error}.", "Record it again from a real run.")
        return ()
    if not isinstance(reports, list) or not all(isinstance(report, dict) for report in reports):
        fields.fault("recorded", f"{path.name} is no list of reports.", "Record it again from a real run.")
        return ()
    absent = [one.strategy for one in strategies if not any(is_report_of(report, one) for report in reports)]
    if absent:
        fields.fault("recorded", f"{path.name} has no report of {', '.join(absent)} at the values and options given here.",
                     "Record all strategies of the experiment in one run.")
    return tuple(reports)
