"""Every error the app raises.

    AppError
    |-- CourseError            the author's fault: lesson files that cannot be taught; stops start-up
    |-- SettingsRefused        the operator's fault: an environment variable nobody can work with; stops start-up
    |-- StorageRefused         the database or its folder cannot be trusted with a learner's work
    |-- NotFound               an address that names nothing
    |   |-- LessonNotFound
    |   |   `-- LessonComing
    |   |-- QuestionNotFound
    |   |-- FigureNotFound
    |   `-- RunNotFound
    |       `-- RunUnreadable    it is there, and another version wrote it
    |-- BadInput               a visitor's slip: a message for each field
    |-- RunRejected            a run that may not start, and what is allowed instead
    |-- NotNow                 what may be done, only not at this moment
    |   |-- TooManyAnswers
    |   |-- TooManyLearners
    |   `-- RunRefused
    |       |-- QuotaExceeded
    |       `-- QueueFull
    `-- RunEnded               a run that started and brought no report
        |-- RunFailed
        |-- RunTimedOut
        `-- RunCancelled

Pure code raises ValueError instead, with the name, the value and the allowed range. Every message says what to do next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernels import spec


class AppError(Exception):
    """The root: whatever the app raises on purpose. `str(error)` is one or more whole sentences or lines for a person."""


@dataclass(frozen=True)
class Fault:
    """One thing wrong in a lesson file: where it stands, which key, what is wrong, and the remedy."""

    file: str
    line: int
    key: str
    message: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        key = f" {self.key}:" if self.key else ""
        return f"{place}:{key} {self.message} {self.remedy}".rstrip()


class CourseError(AppError):
    """All faults of the lesson files at once, in the order in which they were found."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


@dataclass(frozen=True)
class SettingFault:
    """One setting that cannot be used: the variable or flag, the value it holds and what would be allowed."""

    variable: str
    value: str
    allowed: str

    def __str__(self) -> str:
        return f"{self.variable}={self.value}: {self.allowed}"


class SettingsRefused(AppError):
    """All settings that cannot be used, at once."""

    def __init__(self, faults: Sequence[SettingFault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


class StorageRefused(AppError):
    """The database cannot be used as it is: why not, and what the operator can do about it."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"{why} {remedy}")
        self.why = why
        self.remedy = remedy


class NotFound(AppError):
    """An address names something that is not there. `kind` is what was looked for, `name` what it was called."""

    kind = "page"

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no {self.kind} called {name!r}.")
        self.name = name


class LessonNotFound(NotFound):
    """No lesson has this slug."""

    kind = "lesson"


class LessonComing(LessonNotFound):
    """The course names this lesson, and it has no text yet."""

    def __init__(self, slug: str, title: str) -> None:
        super().__init__(slug)
        self.args = (f"The lesson {title} is still being written.",)


class QuestionNotFound(NotFound):
    """The lesson has no question or prediction with this id."""

    kind = "question"


class FigureNotFound(NotFound):
    """No figure has this name."""

    kind = "figure"


class RunNotFound(NotFound):
    """No run has this id."""

    kind = "run"


class RunUnreadable(RunNotFound):
    """The run of this id was stored by another version, in a shape that this one does not know."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.args = ("This run was stored by another version of World Size, and this one cannot read it. "
                     "You can start it again from its lesson.",)


class BadInput(AppError):
    """What a visitor sent cannot be used: field name -> a message to stand beside that field."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("\n".join(f"{field}: {message}" for field, message in errors.items()))
        self.errors = dict(errors)


class RunRejected(AppError):
    """A run that may not start. `faults` name the field, the value and what is allowed."""

    def __init__(self, faults: Sequence[spec.Fault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


class NotNow(AppError):
    """What a visitor may do, only not now: `retry_seconds` says about when to come again."""

    def __init__(self, message: str, *, retry_seconds: int) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class TooManyAnswers(NotNow):
    """This learner, or a network address, has sent as many answers as one may."""


class TooManyLearners(NotNow):
    """As many new learners have begun in this hour as may, at one network address or in all."""


class RunRefused(NotNow):
    """A run that may start, only not now."""


class QuotaExceeded(RunRefused):
    """This learner has started as many runs in the last hour as one may."""


class QueueFull(RunRefused):
    """More runs are waiting, of this learner or in all, than the workers can carry out in a reasonable time."""


class RunEnded(AppError):
    """A run that started and brought no report: one of the three below.

    `message` says in plain words what happened; `rank` is None where no single rank is to blame; `exit` is how that rank
    went ("killed by SIGKILL", "exit code 1"); `phase` is what the run was doing; `log_tail` the last lines it wrote.
    """

    def __init__(
        self, message: str, *, rank: int | None = None, exit: str = "", phase: str = "", log_tail: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.rank = rank
        self.exit = exit
        self.phase = phase
        self.log_tail = log_tail


class RunFailed(RunEnded):
    """A rank, the agent or the host ended before the report was written."""


class RunTimedOut(RunEnded):
    """The time limit passed first."""


class RunCancelled(RunEnded):
    """Whoever asked for the run took it back."""
