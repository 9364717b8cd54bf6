"""What each template receives: one frozen dataclass a template, its file and its variables.

Templates reach nothing else but `shell` (what every page has around it), which `render` adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from markupsafe import Markup


@dataclass(frozen=True)
class Context:
    """Base of all: `template` is the file that these variables belong to."""

    template: ClassVar[str]


@dataclass(frozen=True)
class Shell:
    """What surrounds every page: the chosen theme ("" follows the system), and where the reader is, to come back to."""

    theme: str
    path: str
    here: str  # path and query, for forms that return to this page
    runs: bool


@dataclass(frozen=True)
class MapRow:
    """A line of the course map. `segments` says of each section whether it is done; empty while a lesson is coming."""

    number: int
    slug: str
    title: str
    question: str
    axes: tuple[str, ...]
    coming: bool
    segments: tuple[bool, ...]
    standing: str


@dataclass(frozen=True)
class CourseMap(Context):
    template: ClassVar[str] = "pages/map.html"
    rows: tuple[MapRow, ...]
    lead: MapRow | None  # the lesson the button leads to
    lead_verb: str
    lead_hint: str


@dataclass(frozen=True)
class RailItem:
    """A section in the lesson's rail. `here` is where reading goes on; a script moves that mark to what is on screen."""

    slug: str
    title: str
    done: bool
    here: bool


@dataclass(frozen=True)
class Rail(Context):
    template: ClassVar[str] = "fragments/_rail.html"
    items: tuple[RailItem, ...]
    number: int
    count: int


@dataclass(frozen=True)
class SectionView:
    """A section as HTML. `visit` is the address that notes its end as reached; "" where that is known."""

    slug: str
    title: str
    html: Markup
    visit: str


@dataclass(frozen=True)
class NextLesson:
    """What comes after this lesson; without `slug` it is still to be written."""

    slug: str
    number: int
    title: str
    question: str


@dataclass(frozen=True)
class LessonPage(Context):
    template: ClassVar[str] = "pages/lesson.html"
    title: str
    question: str
    objectives: tuple[Markup, ...]
    out_of_scope: tuple[Markup, ...]
    sections: tuple[SectionView, ...]
    items: tuple[RailItem, ...]
    number: int
    count: int
    next: NextLesson | None


@dataclass(frozen=True)
class OptionView:
    """An option of a question: `mark` is "right" or "wrong" once the learner's own answer says so, else ""."""

    value: str
    html: Markup
    chosen: bool
    mark: Literal["", "right", "wrong"]


@dataclass(frozen=True)
class Feedback:
    """What is said about an answer. `status` unclear means that it could not be read, later that there were too many for now;
    neither cost a try."""

    status: Literal["right", "wrong", "unclear", "later"]
    heading: Markup
    html: Markup


@dataclass(frozen=True)
class Question(Context):
    template: ClassVar[str] = "fragments/_question.html"
    id: str
    lesson: str
    number: int
    count: int
    next_id: str  # "" after the last
    query: str  # the rest of the lesson's address, so that figures keep their values
    kind: Literal["choice", "number"]
    prompt_html: Markup
    unit: str
    options: tuple[OptionView, ...]
    long_options: bool
    answer: str
    variant: int
    submission: str
    feedback: Feedback | None
    tries: int
    another: str  # query of the same question with other numbers; "" where it has none or was not answered
    fresh: bool  # swapped in by htmx: the feedback takes the focus, or the field where it could not be read


@dataclass(frozen=True)
class RunSlip:
    """A run that may not start: what to say beside the button of which experiment, and under which status."""

    experiment: str
    message: str
    status: int


@dataclass(frozen=True)
class GuessOption:
    """One possible guess, with the drawing and the sentence that stand on it."""

    value: str
    label: str
    axis: str
    html: Markup


@dataclass(frozen=True)
class Recall(Context):
    template: ClassVar[str] = "fragments/_recall.html"
    axis: str
    html: Markup  # empty where no guess was made


@dataclass(frozen=True)
class Prediction(Context):
    template: ClassVar[str] = "fragments/_prediction.html"
    id: str
    lesson: str
    query: str
    prompt_html: Markup
    options: tuple[GuessOption, ...]
    kept: str  # the value the learner chose; "" before
    chosen: str  # the value that came with a form that could not be kept
    missing: bool  # the form came without a choice
    later: str  # why the choice could not be kept for now; "" otherwise
    recall: Recall | None  # sent along by htmx, to fill its place elsewhere on the page


@dataclass(frozen=True)
class Term:
    """A number of the verdict line, and how it compares with the one before it ("" at the first)."""

    relation: Literal["", "equal", "differs"]
    number: str
    unit: str
    meaning: str
    measured: bool


@dataclass(frozen=True)
class RankBar:
    """Payload of one rank. Widths are percentages of the drawing, which SVG takes without a style attribute."""

    rank: int
    predicted_width: str
    measured_width: str
    idle: bool
    text: str


@dataclass(frozen=True)
class HeatCell:
    """Bytes from one rank to another; `shade` is q1 to q10, "self" on the diagonal, "" for zero."""

    shade: str
    text: str


@dataclass(frozen=True)
class WireBar:
    """Payload and protocol on the wire, as shares of one bar."""

    heading: str
    payload_width: float
    payload_text: str
    protocol_text: str
    title: str


@dataclass(frozen=True)
class NamedCause:
    """Why what runs is not what the formula says, or why GPUs send unequally."""

    name: str
    text: str


@dataclass(frozen=True)
class StrategyResult:
    """One strategy, measured beside predicted. Totals and `wire_total` count all GPUs together; `standing` is the verdict in a
    row of the table, and `departs` says that something in it is other than the formula or the prediction.
    """

    strategy: str
    title: str
    axis: str
    finding: str
    explanation: str
    causes: tuple[NamedCause, ...]
    terms: tuple[Term, ...]
    bars: tuple[RankBar, ...]
    bars_note: str
    matrix: tuple[tuple[HeatCell, ...], ...]
    matrix_note: str
    wire: WireBar | None
    formula_total: str
    predicted_total: str
    measured_total: str
    wire_total: str
    by_rank: str
    standing: str
    departs: bool


@dataclass(frozen=True)
class Experiment(Context):
    template: ClassVar[str] = "fragments/_experiment.html"
    title: str
    text_html: Markup
    place: str  # id of the place of its run
    run: Markup
    runs: bool
    commands: tuple[str, ...]  # what does the same in a shell, where pages cannot start runs
    size: int  # GPUs of the run
    timed: bool  # whether time is taken and no bytes are counted


@dataclass(frozen=True)
class ProgressRow:
    """One lesson on the learner's own page."""

    slug: str
    title: str
    sections: str
    answers: str
    tries: str


@dataclass(frozen=True)
class RunRow:
    """One run on the learner's own page; `setting` is "" where it cannot be read."""

    id: str
    title: str
    setting: str
    outcome: str
    asked: str


@dataclass(frozen=True)
class Me(Context):
    template: ClassVar[str] = "pages/me.html"
    rows: tuple[ProgressRow, ...]
    runs: tuple[RunRow, ...]  # the latest first
    all_runs: int  # how many there are; the page lists fewer where there are many
    known: bool  # whether anything is kept about this visitor
    unconfirmed: bool  # the form for deleting came without its tick


@dataclass(frozen=True)
class ErrorPage(Context):
    template: ClassVar[str] = "pages/error.html"
    status: int
    title: str
    message: str
    fields: Mapping[str, str]
    request_id: str  # shown where the fault is ours; else ""
    rows: tuple[MapRow, ...]  # the course map, where an address was not found


@dataclass(frozen=True)
class ErrorNotice(Context):
    template: ClassVar[str] = "fragments/_notice.html"
    title: str
    message: str
    request_id: str


CONTEXTS: tuple[type[Context], ...] = (
    CourseMap, Rail, LessonPage, Question, Prediction, Recall, Experiment, Me, ErrorPage, ErrorNotice,
)
