"""What a learner reads when a run has brought no report."""

from __future__ import annotations

from typing import Any

import pytest

from app.runs import endings

DOING = "measuring data parallel (DDP)"


def facts(**changed: Any) -> dict[str, Any]:
    return {"rank": 2, "exit": "exit code 1", "error": "", "phase": "measuring ddp", "log_tail": "the end", **changed}


@pytest.mark.parametrize(
    ("changed", "beginning"),
    [
        ({"error": "ValueError: odd width"}, f"Rank 2 stopped with an error while {DOING}: ValueError: odd width. Every"),
        ({"error": "Is it plugged in?"}, f"Rank 2 stopped with an error while {DOING}: Is it plugged in? Every"),
        ({"exit": "killed by SIGKILL"}, f"Rank 2 was killed by SIGKILL while {DOING}. The system sends this signal"),
        ({"exit": "killed by SIGUSR2"}, f"Rank 2 was killed by SIGUSR2 while {DOING}. Every process"),
        ({"exit": "exit code 3"}, f"Rank 2 left with exit code 3 while {DOING}, before there was a report."),
        ({"rank": None, "exit": "killed by SIGKILL"}, "The agent, the process that starts the ranks, was killed by SIGKILL"),
    ],
)
def test_a_failure_names_who_how_and_in_which_phase(changed: dict[str, Any], beginning: str) -> None:
    error = endings.failed(facts(**changed))
    assert error.message.startswith(beginning)
    assert (error.rank, error.exit, error.phase, error.log_tail) == (
        changed.get("rank", 2), changed.get("exit", "exit code 1"), "measuring ddp", "the end",
    )


@pytest.mark.parametrize(("phase", "told"), [
    ("measuring tensor_parallel", "measuring tensor parallel"),
    ("warming up ddp", "warming up data parallel (DDP)"),
    ("starting", "starting"),
    ("measuring a_stranger", "measuring a_stranger"),
])
def test_a_strategy_is_told_by_the_name_that_a_learner_knows(phase: str, told: str) -> None:
    ending = endings.cancelled(phase)
    assert ending.message.startswith(f"The run was cancelled while {told}. ")
    assert ending.phase == phase


@pytest.mark.parametrize("ending", [
    endings.failed(facts()),
    endings.timed_out({"ranks": [], "log_tail": ""}, 5),
    endings.cancelled("starting"),
    endings.host_died("killed by SIGKILL", "starting", "", had_started=True),
    endings.host_died("exit code 1", "starting", "", had_started=False),
    endings.host_silent(5, "starting"),
])
def test_every_ending_says_that_nothing_is_left_and_what_to_do(ending: Exception) -> None:
    _, told, advice = str(ending).partition("Every process of this run has been ended; nothing is left running. ")
    assert told
    assert advice.endswith(".")


def rank(number: int, state: str, phase: str = "measuring ddp") -> dict[str, Any]:
    return {"rank": number, "state": state, "phase": phase}


def test_a_time_out_says_what_every_rank_was_doing_and_names_the_stopped_one() -> None:
    ranks = [rank(0, "waiting"), rank(1, "stopped"), rank(2, "waiting"), rank(3, "waiting", "warming up ddp")]
    error = endings.timed_out({"ranks": ranks, "log_tail": "stacks"}, 2.5)
    assert f"did not finish within 2.5 seconds. At that moment ranks 0 and 2 were waiting while {DOING}; " in error.message
    assert f"rank 1 was stopped while {DOING}; rank 3 was waiting while warming up data parallel (DDP)." in error.message
    assert (error.rank, error.phase) == (1, "measuring ddp")


def test_a_time_out_blames_nobody_when_every_rank_waits() -> None:
    assert endings.timed_out({"ranks": [rank(0, "waiting"), rank(1, "waiting")], "log_tail": ""}, 5).rank is None


def test_a_time_out_before_any_rank_is_told_as_such() -> None:
    assert "No rank had started." in endings.timed_out({"ranks": [], "log_tail": ""}, 5).message
