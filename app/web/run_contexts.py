"""What the templates of runs receive: where a run stands, what it brought, and the page that keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from markupsafe import Markup

from app.web.contexts import Context, NamedCause, StrategyResult
from app.web.timing_views import Timing


@dataclass(frozen=True)
class Phase:
    """One of the five steps of a run. `value` fills the bar of the step under way; None where nobody can say how far it is."""

    name: str
    state: Literal["done", "now", "todo", "stop"]
    note: str
    value: str | None = None


@dataclass(frozen=True)
class Status:
    """Where a run stands. `poll` is the address that tells the next moment, `delay` when to ask; "" once it has ended."""

    place: str
    poll: str
    delay: int  # milliseconds
    sentence: str
    phases: tuple[Phase, ...]
    so_far: str
    said: str  # what a reader who hears the page is told once; "" where that was said before


@dataclass(frozen=True)
class RunStatus(Context):
    """The polled part alone."""

    template: ClassVar[str] = "fragments/_run_status.html"
    status: Status


@dataclass(frozen=True)
class LeftOut:
    """A strategy that cannot run at these values, and why."""

    title: str
    axis: str
    reason: str


@dataclass(frozen=True)
class Results:
    """Strategies side by side: all of them in one table, some `in_full`, of which the one that is `opened` is seen first.

    `compared` puts the table before them and folds them away; `causes` then stand below the table. `name` keeps the tabs of two
    results on one page apart.
    """

    name: str
    heading: str
    headline: Markup
    backend: str
    strategies: tuple[StrategyResult, ...]
    left_out: tuple[LeftOut, ...]
    in_full: tuple[StrategyResult, ...]
    tabs: bool
    opened: int
    compared: bool
    causes: tuple[NamedCause, ...]


@dataclass(frozen=True)
class Outline:
    """What a strategy is predicted to send, drawn while nothing is measured. Widths are percentages of the drawing."""

    title: str
    axis: str
    heading: str
    ranks: tuple[tuple[int, str, bool], ...]  # rank, width, idle


@dataclass(frozen=True)
class Note:
    """What stands beside the button at the figure's values. `apart` says that what is shown below belongs to others.

    `about` names what a reader who hears the page should be told when it is new; `shown` names what stands below.
    """

    apart: str
    text: str
    about: str
    shown: str


@dataclass(frozen=True)
class RunNote(Context):
    """The note alone, as the page asks for it when the figure has settled at other values."""

    template: ClassVar[str] = "fragments/_run_note.html"
    note: Note
    place: str
    said: str


@dataclass(frozen=True)
class Button:
    """What starts a run; `values` are those of the page, without a script. `note_address` tells the note at other values."""

    experiment: str
    action: str
    values: tuple[tuple[str, str], ...]
    note: Note
    note_address: str


@dataclass(frozen=True)
class Failure:
    """Why there is no result, in words; `log` holds the last lines that were written."""

    run_id: str
    heading: str
    setting: str
    message: str
    log: str
    phases: tuple[Phase, ...]
    command: str


@dataclass(frozen=True)
class Measured:
    """A run of one's own that has ended well, and the ways to take it away."""

    run_id: str
    setting: str
    age: str
    phases: tuple[Phase, ...]
    results: Results | None  # None where times were taken
    timing: Timing | None
    command: str


@dataclass(frozen=True)
class Recorded:
    """The run that ships with the lesson."""

    sentence: str
    results: Results | None  # None where times were taken
    timing: Timing | None


@dataclass(frozen=True)
class RunPlace(Context):
    """The place of a run in a page: the button, then whatever has come of it."""

    template: ClassVar[str] = "fragments/_run.html"
    place: str
    run_id: str  # "" where nothing has been run
    of: str  # the experiment as addresses name it; "" for a run that belongs to none
    figure_form: str  # selects the form whose live values go along with every request; "" where there is none
    button: Button | None
    refusal: str
    remark: str
    status: Status | None
    outlines: tuple[Outline, ...]
    cancellable: bool
    measured: Measured | None
    failure: Failure | None
    recorded: Recorded | None
    permalink: bool  # whether this is the run's own page, which needs no link to itself
    fresh: bool  # a measurement has just arrived: fills grow
    focus: bool  # swapped in after a press: the place takes the focus
    said: str  # what a reader who hears the page is told once


@dataclass(frozen=True)
class Refusal(Context):
    """A message beside the button. The rest of the page stays as it is."""

    template: ClassVar[str] = "fragments/_run_refusal.html"
    message: str


@dataclass(frozen=True)
class Fact:
    """A line of the environment."""

    name: str
    value: str


@dataclass(frozen=True)
class RunPage(Context):
    template: ClassVar[str] = "pages/run.html"
    title: str
    lede: str
    run: Markup
    place: str
    facts: tuple[Fact, ...]
    asked: str
    run_id: str
    lesson: str  # the address where the run belongs; "" for none
    lesson_title: str
    refresh: bool  # whether it is under way: without a script the page comes again by itself
    kept_days: int  # after it has ended
