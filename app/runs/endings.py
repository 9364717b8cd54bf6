"""How a run without a report is told: facts from the launch host in, an error with whole sentences out. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.errors import RunCancelled, RunFailed, RunTimedOut
from kernels.spec import STRATEGY_SPECS

NOTHING_LEFT = "Every process of this run has been ended; nothing is left running."
SIGNAL_REASONS = {
    "SIGKILL": "The system sends this signal when memory runs out, and so does kill -9.",
    "SIGTERM": "Some other program asked it to stop.",
    "SIGSEGV": "It touched memory that is not its own, which is a fault in compiled code.",
    "SIGABRT": "Compiled code gave up on purpose; its log says why.",
    "SIGBUS": "It could not reach its memory, which happens when a disk or shared memory is full.",
}
TRY_AGAIN = "Run it again; if it fails again, choose smaller values."


def failed(facts: Mapping[str, Any]) -> RunFailed:
    """A rank (or the agent, where rank is None) raised, was killed or left."""
    rank, phase, how = facts["rank"], facts["phase"], facts["exit"]
    doing = _told(phase)
    who = "The agent, the process that starts the ranks," if rank is None else f"Rank {rank}"
    if facts["error"]:
        story = f"{who} stopped with an error while {doing}: {_sentence(facts['error'])}"
        advice = "The last lines of its log show where. Other values may avoid it."
    elif how.startswith("killed by "):
        story = " ".join(filter(None, [f"{who} was {how} while {doing}.", SIGNAL_REASONS.get(how.removeprefix("killed by "))]))
        advice = TRY_AGAIN
    else:
        story, advice = f"{who} left with {how} while {doing}, before there was a report.", TRY_AGAIN
    return RunFailed(f"{story} {NOTHING_LEFT} {advice}", rank=rank, exit=how, phase=phase, log_tail=facts["log_tail"])


def timed_out(facts: Mapping[str, Any], limit_seconds: float) -> RunTimedOut:
    """The time limit passed; `ranks` says what each was doing at that moment."""
    ranks: Sequence[Mapping[str, Any]] = facts["ranks"]
    stopped = [rank for rank in ranks if rank["state"].startswith("stopped")]
    culprit = stopped[0] if len(stopped) == 1 else None
    message = (f"The run did not finish within {limit_seconds:g} seconds. {_whereabouts(ranks)} {NOTHING_LEFT} "
               "Run it again; if it takes too long again, ask for less at once or choose smaller values.")
    return RunTimedOut(message, rank=None if culprit is None else culprit["rank"], exit="time limit",
                       phase=(culprit or (ranks[0] if ranks else {"phase": "starting"}))["phase"], log_tail=facts["log_tail"])


def cancelled(phase: str) -> RunCancelled:
    """Whoever asked for the run took it back."""
    return RunCancelled(f"The run was cancelled while {_told(phase)}. {NOTHING_LEFT} You can start it again at any time.",
                        exit="cancelled", phase=phase)


def host_died(how: str, phase: str, log_tail: str, *, had_started: bool) -> RunFailed:
    """The launch host went during the run, or never came up."""
    if had_started:
        story = f"The launch host, the process that starts every run, was lost while {_told(phase)} ({how})."
        advice = "The next run gets a new one: run it again."
    else:
        story = f"The launch host, the process that starts every run, could not start ({how})."
        advice = "The last lines of its log say why. If torch is missing, install worldsize with its extra 'lab'."
    return RunFailed(f"{story} {NOTHING_LEFT} {advice}", exit=how, phase=phase, log_tail=log_tail)


def host_silent(limit_seconds: float, phase: str) -> RunTimedOut:
    """The launch host neither ended the run in time nor said anything, so it was killed with all below it."""
    message = (f"The run did not finish within {limit_seconds:g} seconds, and the launch host that should have stopped it "
               f"did not answer, so both were killed. {NOTHING_LEFT} The next run gets a new host: run it again.")
    return RunTimedOut(message, exit="time limit", phase=phase)


def _whereabouts(ranks: Sequence[Mapping[str, Any]]) -> str:
    """'Ranks 0, 1 and 3 were waiting while measuring ddp; rank 2 was stopped while measuring ddp.'"""
    if not ranks:
        return "No rank had started."
    groups: dict[tuple[str, str], list[int]] = {}
    for rank in ranks:
        groups.setdefault((rank["state"], rank["phase"]), []).append(rank["rank"])
    parts = [f"{_ranks(numbers)} {state} while {_told(phase)}" for (state, phase), numbers in groups.items()]
    return f"At that moment {'; '.join(parts)}."


def _told(phase: str) -> str:
    """'measuring tensor_parallel' -> 'measuring tensor parallel': a strategy by the name that a learner knows."""
    doing, _, last = phase.rpartition(" ")
    if last not in STRATEGY_SPECS:
        return phase
    title = STRATEGY_SPECS[last].title
    name = title if title[1:2].isupper() else title[:1].lower() + title[1:]
    return f"{doing} {name}".strip()


def _ranks(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"rank {numbers[0]} was"
    return f"ranks {', '.join(map(str, numbers[:-1]))} and {numbers[-1]} were"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
