"""What a course is once its files are read and checked: frozen dataclasses, no reading and no HTML of pages.

A page is built from `Section.parts`: finished HTML and `Slot`s, the places where a page sets in what depends on the
learner (a figure's state, a question's try, a run). `app.course.render.render_section` joins the two.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, Protocol

from app.course.expression import Expression, Given, Value, shown_number
from app.course.template import Template
from kernels import spec

SECTIONS = ("Hook", "Intuition", "Formalize", "Play", "Worked example", "Checkpoint", "Summary")
AXES = ("data", "tensor", "pipeline", "shard")

FigureFields = Mapping[str, Collection[str]]
"""Every figure a lesson may name, with the names of its fields."""


@dataclass(frozen=True)
class Slot:
    """A place in a section that the page fills: which thing, by which name, with which starting values."""

    kind: Literal["figure", "question", "experiment", "prediction", "recall"]
    name: str
    params: Mapping[str, str] = field(default_factory=dict)


class Embed(Protocol):
    """What a page supplies for the slots of a section; each returns finished HTML."""

    def figure(self, name: str, params: Mapping[str, str]) -> str: ...

    def question(self, question_id: str) -> str: ...

    def experiment(self, experiment_id: str) -> str: ...

    def prediction(self, prediction_id: str) -> str: ...

    def recall(self, prediction_id: str) -> str:
        """The learner's own guess shown again, once the figure has answered; empty where none was made."""


@dataclass(frozen=True)
class Section:
    """One of the seven. The page writes the heading (`title`, with `slug` as its anchor); `parts` is what follows it."""

    slug: str
    title: str
    parts: tuple[str | Slot, ...]


@dataclass(frozen=True)
class Source:
    """Something a lesson cites; `id` is what the text names, `short` what a citation shows."""

    id: str
    short: str
    text: str
    url: str

    @property
    def anchor(self) -> str:
        return f"source-{self.id}"


@dataclass(frozen=True)
class PredictionOption:
    """One possible guess. `recall_html` is what the learner reads beside it after the figure has answered."""

    value: str
    axis: str | None
    label: str
    text_html: str
    recall_html: str


@dataclass(frozen=True)
class Prediction:
    """A guess asked for before anything is shown. It is kept, not graded."""

    id: str
    prompt_html: str
    options: tuple[PredictionOption, ...]

    def option(self, value: str) -> PredictionOption | None:
        return next((option for option in self.options if option.value == value), None)


@dataclass(frozen=True)
class Experiment:
    """A real run beside its formula: strategies measured in one launch, and a recorded result to show before the first.

    Where `figure` is named, its fields give the values; `P` and `strategies` hold the ones the lesson starts from.
    `recorded` holds reports in the schema that the API and `worldsize measure --json` share; empty when none is shipped.
    `labels` are the lesson's own names of the strategies, "" where it gives none. `purpose` is "counting", bytes beside the
    formula, or "timing": then the one strategy is called at many sizes, and what was recorded belongs to the figure.
    """

    id: str
    title: str
    text_html: str
    figure: str | None
    P: int
    strategies: tuple[spec.Experiment, ...]
    recorded: tuple[Mapping[str, object], ...] = ()
    labels: tuple[str, ...] = ()
    purpose: str = "counting"

    def recorded_report(self, run: spec.Experiment) -> Mapping[str, object] | None:
        """The recorded report of this run: the same strategy at the same values and options."""
        return next((report for report in self.recorded if is_report_of(report, run)), None)

    def title_of(self, run: spec.Experiment) -> str:
        """The lesson's label, at whatever values the run is. Without one the strategy's title and, where the experiment runs it
        more than once, the options that set this run apart."""
        for one, label in zip(self.strategies, self.labels, strict=False):
            if label and (one.strategy, one.options) == (run.strategy, run.options):
                return label
        rivals = [other for other in self.strategies if other.strategy == run.strategy]
        strategy = spec.STRATEGY_SPECS[run.strategy]
        apart = [option.name for option in strategy.options if len({other.option(option.name) for other in rivals}) > 1]
        return ", ".join([strategy.title, *(_in_words(name, run.option(name)) for name in apart)])


def is_report_of(report: Mapping[str, object], run: spec.Experiment) -> bool:
    """Whether a recorded report is of this run."""
    recorded = report.get("spec")
    if report.get("strategy") != run.strategy or not isinstance(recorded, Mapping):
        return False
    numbers = all(recorded.get(name) == getattr(run, name) for name in ("L", "H", "T", "m"))
    return numbers and recorded.get("options", {}) == dict(run.options)


def _in_words(name: str, value: spec.OptionValue) -> str:
    """every_micro_step -> every micro step; accumulation, 4 -> accumulation 4."""
    return value.replace("_", " ") if isinstance(value, str) else f"{name.replace('_', ' ')} {value}"


@dataclass(frozen=True)
class Choice:
    """One answer the author foresaw: its value at the given numbers, how it is shown, and what is said to whoever gives it.

    Its `feedback` belongs to the server. It reaches a page only as part of a `Verdict`.
    """

    value: Expression
    label: Template | None  # None: the label is the value itself
    feedback: Template


@dataclass(frozen=True)
class Option:
    """A choice as the page shows it: `value` is what the form sends, `html` what stands on the label."""

    value: str
    html: str


@dataclass(frozen=True)
class Instance:
    """A question at one try: other numbers, another order. It holds nothing that tells right from wrong."""

    question_id: str
    variant: int
    seed: int
    kind: Literal["choice", "number"]
    prompt_html: str
    unit: str
    options: tuple[Option, ...]
    given: Mapping[str, Value]


@dataclass(frozen=True)
class Question:
    """A checkpoint question. `givens[0]` is the first try of every learner; the others are for later tries."""

    id: str
    kind: Literal["choice", "number"]
    prompt: Template
    unit: str
    digits: int | None
    tolerance: Fraction
    givens: tuple[Given, ...]
    answer: Choice
    wrong: tuple[Choice, ...]
    otherwise: Template | None  # kind number: what is said about an answer nobody foresaw

    @property
    def varies(self) -> bool:
        return len(self.givens) > 1

    def variant(self, number: int, seed: int) -> Instance:
        """The question as a learner sees it at try `number` (from 0). The same numbers give the same instance, always."""
        given = self.givens[self._given_index(number, seed)]
        return Instance(self.id, number, seed, self.kind, self.prompt.html(given), self.unit,
                        self._options(given, number, seed), given)

    def _given_index(self, number: int, seed: int) -> int:
        """Every set of numbers once, in an order of the learner's own, before one comes again; the first is the author's."""
        later = list(range(1, len(self.givens)))
        random.Random(f"{self.id} given {seed}").shuffle(later)
        return [0, *later][number % len(self.givens)]

    def _options(self, given: Given, number: int, seed: int) -> tuple[Option, ...]:
        if self.kind == "number":
            return ()
        options = [self.option(choice, given) for choice in (self.answer, *self.wrong)]
        random.Random(f"{self.id} order {seed} {number}").shuffle(options)
        return tuple(options)

    def option(self, choice: Choice, given: Given) -> Option:
        """How a choice looks at these numbers. What the form sends is what the label says, so it gives nothing away."""
        if choice.label is None:
            text = shown_number(choice.value.evaluate(given), self.digits)
            return Option(text, text)
        return Option(choice.label.plain(given), choice.label.html(given))


@dataclass(frozen=True)
class Lesson:
    """A lesson, checked. Order and prerequisites are not here: they belong to the course."""

    slug: str
    title: str
    question: str
    objectives_html: tuple[str, ...]
    out_of_scope_html: tuple[str, ...]
    given: Given
    sections: tuple[Section, ...]
    questions: tuple[Question, ...]
    predictions: tuple[Prediction, ...]
    experiments: tuple[Experiment, ...]
    sources: tuple[Source, ...]
    figures: tuple[str, ...]  # in the order the text shows them
    anchors: frozenset[str]

    @property
    def question_ids(self) -> tuple[str, ...]:
        return tuple(question.id for question in self.questions)

    def section(self, slug: str) -> Section | None:
        return next((section for section in self.sections if section.slug == slug), None)

    def find_question(self, question_id: str) -> Question | None:
        return next((question for question in self.questions if question.id == question_id), None)

    def find_prediction(self, prediction_id: str) -> Prediction | None:
        return next((prediction for prediction in self.predictions if prediction.id == prediction_id), None)

    def find_experiment(self, experiment_id: str) -> Experiment | None:
        return next((experiment for experiment in self.experiments if experiment.id == experiment_id), None)


@dataclass(frozen=True)
class Entry:
    """A line of the course map. Without a lesson it is still coming: shown, but not to be opened."""

    number: int
    slug: str
    title: str
    question: str
    prerequisites: tuple[str, ...]
    lesson: Lesson | None

    @property
    def coming(self) -> bool:
        return self.lesson is None


@dataclass(frozen=True)
class Course:
    """All lessons in their order."""

    entries: tuple[Entry, ...]

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        return tuple(entry.lesson for entry in self.entries if entry.lesson is not None)

    def entry(self, slug: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.slug == slug), None)

    def lesson(self, slug: str) -> Lesson | None:
        """The lesson, or None where the slug is unknown or the lesson still coming."""
        entry = self.entry(slug)
        return None if entry is None else entry.lesson

    def after(self, slug: str) -> Entry | None:
        """The next line of the map, coming or not; None after the last."""
        slugs = [entry.slug for entry in self.entries]
        following = slugs.index(slug) + 1
        return self.entries[following] if following < len(self.entries) else None
