"""Sentences and bars about a run: where it stands, how long ago, why there is no result. Each is made from the run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.errors import RunRejected
from app.runs.store import Run, State
from app.web.run_contexts import Phase
from app.web.timing_views import is_timing, timing_range, timing_setting
from kernels.spec import ELEMENTS, P, RunSpec

STEPS = ("Queue", "Launch", "Warm-up", "Measure", "Done")
MOST_NAMES = 6  # in one sentence
SPACE = "\N{NO-BREAK SPACE}"
NUMERALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
ORDINALS = ("", "Next", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth", "Ninth", "Tenth")


def numeral(number: int) -> str:
    return NUMERALS[number] if number < len(NUMERALS) else f"{number:,}"


def listed(parts: Sequence[str]) -> str:
    """'a, b and c'."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def seconds(value: float) -> str:
    """0.4 s; from ten seconds on without a fraction."""
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def processes(run: RunSpec) -> str:
    """'Four processes', to begin a sentence."""
    return f"{numeral(run.P).capitalize()} process{'' if run.P == 1 else 'es'}"


def age(then: datetime, now: datetime) -> str:
    """'3 minutes ago', or the day where that is long past."""
    passed = (now - then).total_seconds()
    if passed < 10:
        return "just now"
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")):
        if passed >= size:
            count = int(passed // size)
            if unit == "day" and count > 30:
                return f"on {then.day} {then:%B %Y}"
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    raise AssertionError("a second has passed")


def setting(run: RunSpec) -> str:
    """'P = 4, L = 2, H = 4, T = 1', as far as all experiments of the run share it."""
    if is_timing(run):
        return timing_setting(run)
    words = [f"P{SPACE}={SPACE}{run.P}"]
    lengths = {one.options.get(ELEMENTS.name, 0) for one in run.experiments}
    if len(lengths) == 1 and (elements := lengths.pop()):  # a collective alone: the model's numbers say nothing about it
        return f"{words[0]}, s{SPACE}={SPACE}{elements}"
    for name in ("L", "H", "T", "m"):
        values = {getattr(one, name) for one in run.experiments}
        if len(values) == 1 and (name != "m" or values != {1}):
            words.append(f"{name}{SPACE}={SPACE}{values.pop()}")
    micro_steps = {one.options.get("accumulation", 1) for one in run.experiments}
    if len(micro_steps) == 1 and micro_steps != {1}:
        words.append(f"A{SPACE}={SPACE}{micro_steps.pop()}")
    return ", ".join(words)


def page_title(run: RunSpec, names: Sequence[str]) -> str:
    """The heading of a run's own page."""
    gpus = f"{numeral(run.P)} GPU{'' if run.P == 1 else 's'}"
    if is_timing(run):
        return f"An all-reduce, timed on {gpus}"
    return f"{names[0]} on {gpus}" if len(names) == 1 else f"{numeral(len(names)).capitalize()} ways, {gpus}"


def page_lede(run: RunSpec, names: Sequence[str]) -> str:
    """What ran and at which values, in one sentence; a long list of names is left to the result."""
    if is_timing(run):
        return f"{numeral(len(names)).capitalize()} sizes of buffer, from {timing_range(run)}."
    some = list(dict.fromkeys(names))
    return f"{'; '.join(some)}, at {setting(run)}." if len(some) <= MOST_NAMES else f"At {setting(run)}."


def over_the_cap(size: int, limit: int) -> str:
    """Beside the button while the figure has more GPUs than this server runs processes."""
    return f"This server runs at most {limit} processes, and the figure has {size}. Put P at {limit} or less."


def refusal(rejected: RunRejected, limit: int) -> str:
    """What cannot run, and that nothing was started. Over the cap the note beside it has given the reason."""
    if any(fault.field == P.name and fault.value not in range(limit + 1) for fault in rejected.faults):
        return f"Nothing was started. Put P at {limit} or less first."
    faults = "; ".join(f"{fault.field} = {fault.value}: {fault.allowed}" for fault in rejected.faults)
    return f"{faults}. Nothing was started."


def queued(position: int, away: str) -> str:
    """The place in the queue. `away` says since when nobody has been there to take runs; "" while somebody is."""
    if away:
        return f"{away} Your run keeps its place and starts by itself as soon as one is there."
    place = ORDINALS[position] if position < len(ORDINALS) else f"{position}th"
    return f"{place} in the queue." if position else "Its turn comes now."


def worker_away(since: datetime, now: datetime) -> str:
    """Nobody takes runs: since when, if anybody ever did."""
    if since.timestamp() == 0:
        return "No worker has been started on this server yet."
    return f"The worker of this server was seen last {age(since, now)}."


def running(run: Run, titles: Sequence[str]) -> str:
    """What happens now."""
    progress = run.progress
    if run.cancel_requested:
        return "Stopping. Every process of this run is being ended."
    again = "The worker that carried this run was lost, so it began anew. " if run.losses else ""
    if progress is None or progress.phase not in ("warming up", "measuring"):
        return f"{again}{processes(run.spec)} start{'s' if run.spec.P == 1 else ''} and find each other on this machine."
    title = titles[progress.experiment]
    if is_timing(run.spec):
        return f"{again}{title}, {'to warm up' if progress.phase == 'warming up' else 'call after call'}."
    if progress.phase == "warming up":
        why = "libraries arrange their buffers in these steps, so they do not count"
        return f"{again}{title}, warming up in {progress.dtype}: {why}."
    count = f"repetition {max(1, progress.repetition)} of {progress.repetitions}" if progress.repetitions else "the first step"
    return f"{again}{title}, measuring in {progress.dtype}: {count}."


def phases(run: Run, position: int, now: datetime) -> tuple[Phase, ...]:
    """The five steps of a run that is under way. Warm-up is passed once: later strategies warm up while others are measured."""
    at, note, value = _where(run, position)
    waited = ((run.started_at or now) - run.asked_at).total_seconds()
    return tuple(
        Phase(name, "done" if number < at else "now" if number == at else "todo",
              note if number == at else seconds(max(0.0, waited)) if number == 0 and run.started_at else "",
              value if number == at else None)
        for number, name in enumerate(STEPS)
    )


def _where(run: Run, position: int) -> tuple[int, str, str | None]:
    progress = run.progress
    if run.state is State.QUEUED:
        return 0, f"place {position}" if position else "", None
    if progress is None or progress.phase not in ("warming up", "measuring"):
        return 1, "", None
    if progress.phase == "warming up" and progress.fraction == 0:
        return 2, "", None
    what = "size" if is_timing(run.spec) else "strategy"
    return 3, f"{what} {progress.experiment + 1} of {progress.experiments}", f"{progress.fraction:.3f}"


def phases_of_done(run: Run) -> tuple[Phase, ...]:
    """How long each step took, and all of them."""
    assert run.ended_at is not None
    names = ("queued", "launching", "warming_up", "measuring")
    notes = [seconds(run.seconds[name]) if name in run.seconds else "" for name in names]
    notes.append(f"{seconds((run.ended_at - run.asked_at).total_seconds())} in all")
    return tuple(Phase(name, "done", note) for name, note in zip(STEPS, notes, strict=True))


def verdict_of(verdict: str, count: int) -> str:
    """'differs', 'are without a verdict': the verb for so many strategies."""
    if verdict == "differs":
        return "differs" if count == 1 else "differ"
    return f"{'is' if count == 1 else 'are'} without a verdict"


def phases_of_ended(run: Run) -> tuple[Phase, ...]:
    """The step in which a run without a result stopped."""
    where = "" if run.failure is None else run.failure.phase
    stopped = 3 if "measuring" in where else 2 if "warm" in where else 0 if run.started_at is None else 1
    word = {State.CANCELLED: "cancelled", State.TIMED_OUT: "out of time"}.get(run.state, "stopped here")
    begun = run.asked_at if run.started_at is None else run.started_at
    notes = {0: seconds((begun - run.asked_at).total_seconds())}
    notes[stopped] = word if run.ended_at is None else f"{word} after {seconds((run.ended_at - begun).total_seconds())}"
    return tuple(Phase(name, "done" if number < stopped else "stop" if number == stopped else "todo", notes.get(number, ""))
                 for number, name in enumerate(STEPS))


def failure_heading(run: Run) -> str:
    rank = None if run.failure is None else run.failure.rank
    if run.state is State.CANCELLED:
        return "This run was cancelled."
    if run.state is State.TIMED_OUT:
        return f"The time limit of {seconds(run.spec.time_limit_seconds)} ended this run."
    return "The run ended without a result." if rank is None else f"Rank {rank} stopped before the run was done."
