"""What a form asks to run: an experiment of a lesson at its figure's values, or strategies at values of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from app.course.model import Course, Experiment, Lesson, Slot
from app.errors import BadInput, NotFound, RunRejected
from app.figures import FIGURES
from app.figures.engine import read_query, start_values
from app.figures.inputs import Inputs
from app.runs import timing
from app.runs.sharing import LeftOut, runnable
from kernels import spec
from kernels.spec import Fault, RunSpec

Pairs = Sequence[tuple[str, str]]
NUMBERS = ("P", "L", "H", "T", "m")
MOST_DIGITS = 9
ACCUMULATION = "accumulation"
OF_FIGURES = {"s": spec.ELEMENTS.name, "A": ACCUMULATION}  # a figure's field: the option that it sets, where a strategy has it
SET_ELSEWHERE = (*OF_FIGURES.values(), "calls")
OWN_KEYS = ("experiment", "again", "strategy", *NUMBERS)


class ExperimentNotFound(NotFound):
    """No lesson has an experiment of this name."""

    kind = "experiment"


@dataclass(frozen=True)
class Place:
    """An experiment where it stands in its lesson."""

    lesson: Lesson
    experiment: Experiment

    @property
    def key(self) -> str:
        """How forms and addresses name it."""
        return f"{self.lesson.slug}/{self.experiment.id}"

    def is_at(self, run: RunSpec) -> bool:
        """Whether a run is one of this experiment: at any values where a figure gives them, else at the lesson's own."""
        if run.purpose != self.experiment.purpose:
            return False
        if self.experiment.figure is None:
            fitting, _ = runnable(self.experiment.P, self.experiment.strategies)
            return fitting is not None and (run.P, run.experiments) == (fitting.P, fitting.experiments)
        return all(self.taught(one) is not None for one in run.experiments)

    def taught(self, run: spec.Experiment) -> spec.Experiment | None:
        """The strategy of the lesson that a run carried out, at whatever values its figure stood."""
        return next((one for one in self.experiment.strategies if same_kind(one, run)), None)


def same_kind(one: spec.Experiment, other: spec.Experiment) -> bool:
    """Whether both are the same strategy of a lesson, at whatever values."""
    return _kind(one) == _kind(other)


def _kind(experiment: spec.Experiment) -> tuple[str, dict[str, spec.OptionValue]]:
    """A strategy and its options, but for those that a figure or a timing run sets."""
    return experiment.strategy, {name: value for name, value in experiment.options.items() if name not in SET_ELSEWHERE}


def find_place(course: Course, key: str) -> Place:
    """The experiment that a form or an address names."""
    slug, _, name = key.partition("/")
    lesson = course.lesson(slug)
    experiment = None if lesson is None else lesson.find_experiment(name)
    if lesson is None or experiment is None:
        raise ExperimentNotFound(key)
    return Place(lesson, experiment)


def wanted(place: Place, pairs: Pairs, max_world_size: int) -> RunSpec:
    """What can run of an experiment at the values of a form. Raises BadInput or RunRejected."""
    size, experiments = at_values(place.experiment, form_values(place, pairs))
    run = possible(size, experiments, max_world_size)
    return timed(size, place.experiment) if place.experiment.purpose == timing.PURPOSE else run


def timed(size: int, experiment: Experiment) -> RunSpec:
    """The run over many sizes that a timing experiment stands for."""
    return timing.timing_run(size, str(experiment.strategies[0].option("implementation")))


def possible(size: int, experiments: Sequence[spec.Experiment], max_world_size: int) -> RunSpec:
    """One launch of those that can run. Raises RunRejected where none can."""
    if faults := spec.world_size_faults(size, max_world_size):
        raise RunRejected(faults)
    fitting, left_out = runnable(size, experiments)
    if fitting is None:
        raise RunRejected(list(dict.fromkeys(fault for _, faults in left_out for fault in faults)))
    return fitting


def form_values(place: Place, pairs: Pairs) -> dict[str, Any]:
    """Values of the figure that an experiment belongs to: those of the live figure where it came along, else the page's."""
    if place.experiment.figure is None:
        return {}
    figure = FIGURES[place.experiment.figure]
    prefix = f"{figure.name}."
    live = [(key, value) for key, value in pairs if key.startswith(prefix)]
    plain = [(key, value) for key, value in pairs if key in figure.field_names]
    reading = read_query(figure, live or plain, prefix if live else "", starts(place.lesson, figure.name))
    if reading.errors:
        raise BadInput(reading.errors)
    return dict(reading.inputs.values)


def page_values(place: Place, pairs: Pairs) -> Mapping[str, Any]:
    """The same from the address of a lesson's page; a bad value there shows the last good one."""
    if place.experiment.figure is None:
        return {}
    figure = FIGURES[place.experiment.figure]
    inputs: Inputs = read_query(figure, pairs, f"{figure.name}.", starts(place.lesson, figure.name)).inputs
    return dict(inputs.values)


def starts(lesson: Lesson, figure: str) -> dict[str, Any]:
    """The values a lesson sets its figure to."""
    slots = (part for section in lesson.sections for part in section.parts if isinstance(part, Slot))
    params = next((slot.params for slot in slots if slot.kind == "figure" and slot.name == figure), {})
    return start_values(FIGURES[figure], params)


def at_values(experiment: Experiment, values: Mapping[str, Any]) -> tuple[int, tuple[spec.Experiment, ...]]:
    """World size and strategies of an experiment at a figure's values, some of which are options of a strategy.

    With equal batches every strategy sees the P T tokens that the replicas of data parallel see together: tensor parallel in
    one micro-batch, the pipeline in P of them.
    """
    size = values.get("P", experiment.P)
    if experiment.purpose == timing.PURPOSE:
        return size, timed(size, experiment).experiments
    numbers = {name: values[name] for name in ("L", "H", "T", "m") if name in values}
    equal = values.get("batch") == "equal"
    sized = (_with_options(replace(one, **numbers), values) for one in experiment.strategies)
    return size, tuple(_fed(one, size if equal else 1) for one in sized)


def _with_options(experiment: spec.Experiment, values: Mapping[str, Any]) -> spec.Experiment:
    """A figure may offer a few lengths as words, so its values are read as numbers here."""
    takes = {option.name for option in spec.STRATEGY_SPECS[experiment.strategy].options}
    given = {option: int(values[field]) for field, option in OF_FIGURES.items() if field in values and option in takes}
    return replace(experiment, options={**experiment.options, **given})


def _fed(experiment: spec.Experiment, times: int) -> spec.Experiment:
    strategy = spec.STRATEGY_SPECS[experiment.strategy]
    if strategy.uses_micro_batches:
        return replace(experiment, m=experiment.m * times)
    return replace(experiment, T=experiment.T * times) if strategy.axis == "tensor" else experiment


def lesson_address(place: Place, run: RunSpec) -> str:
    """Where the experiment stands in its lesson, with its figure at the values of a run."""
    figure = place.experiment.figure
    names = () if figure is None else FIGURES[figure].field_names
    first = run.experiments[0]
    values: dict[str, spec.OptionValue] = {"P": run.P, **{name: getattr(first, name) for name in ("L", "H", "T", "m")}}
    values |= {field: first.options[option] for field, option in OF_FIGURES.items() if option in first.options}
    query = urlencode([(f"{figure}.{name}", values[name]) for name in names if name in values])
    return f"/lessons/{place.lesson.slug}{'?' if query else ''}{query}#experiment-{place.experiment.id}"


def left_out_of(place: Place, run: RunSpec) -> LeftOut:
    """Strategies of the lesson that are not in a run of its experiment, with the reasons at that run's values."""
    ran = [_kind(one) for one in run.experiments]
    numbers = {name: getattr(run.experiments[0], name) for name in ("L", "H", "T")} if place.experiment.figure else {}
    missing = [replace(one, **numbers) for one in place.experiment.strategies if _kind(one) not in ran]
    return runnable(run.P, missing)[1]


def strategies_of(pairs: Pairs, max_world_size: int) -> RunSpec:
    """One or several strategies at the same values; further keys are options of those that take them."""
    given = _single(pairs)
    names = [value for key, value in pairs if key == "strategy"]
    if unknown := [name for name in names if name not in spec.STRATEGY_SPECS]:
        raise RunRejected([Fault("strategy", unknown[0][:40], f"unknown; choose one of {', '.join(spec.STRATEGY_SPECS)}")])
    numbers = {name: _whole(name, given.pop(name)) for name in NUMBERS if name in given}
    size = numbers.pop("P", spec.P.default)
    experiments = [spec.Experiment(name, **numbers, options=_options(name, given)) for name in names]
    taken = {option for one in experiments for option in one.options}
    if left := [key for key in given if key not in taken]:
        raise BadInput({left[0][:40]: "is neither a number of a run nor an option of the strategy."})
    return possible(size, experiments, max_world_size)


def _single(pairs: Pairs) -> dict[str, str]:
    given: dict[str, str] = {}
    for key, value in pairs:
        if key != "strategy" and given.setdefault(key, value) != value:
            raise BadInput({key[:40]: "was given twice; give it once."})
    return given


def _options(strategy: str, given: Mapping[str, str]) -> dict[str, spec.OptionValue]:
    declared = spec.STRATEGY_SPECS[strategy].options
    return {option.name: _whole(option.name, given[option.name]) if isinstance(option, spec.Range) else given[option.name]
            for option in declared if option.name in given}


def _whole(name: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not (text.isascii() and digits.isdecimal() and len(digits) <= MOST_DIGITS):
        raise BadInput({name: f"must be a whole number, written in digits, at most {MOST_DIGITS} of them."})
    return int(text)
