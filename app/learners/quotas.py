"""How much may be stored in an hour, so that a script cannot fill the disk: answers by learner and by address, new learners by
address and in all. What else a learner leaves has an end of its own: one guess a prediction, one visit a section.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from sqlalchemy import delete, select, tuple_
from sqlalchemy.orm import Session

from app.db import count_up
from app.errors import TooManyAnswers, TooManyLearners
from app.tables import attempts, tallies

HOUR = timedelta(hours=1)
WEEK = timedelta(weeks=1)
HOURS_A_WEEK = 10  # at the full quota: who practises every day stays far below, and no page has to read a million answers
SHARING = 100  # learners behind one address, such as a class: together they may do what each may do alone
ADDRESSES = 10  # at the full quota of new learners: more at once are no class but a flood
EVERYBODY = "everybody"

Kind = Literal["answers", "learners"]


@dataclass(frozen=True)
class Allowance:
    """What may be stored in an hour for whoever asks. `client` stands for a network address and does not tell it."""

    client: str
    answers: int
    learners: int


def spend_learner(session: Session, allowance: Allowance) -> None:
    """Count a new learner. Raises TooManyLearners, and then the transaction has to be undone."""
    if not _spend(session, "learners", allowance.client, allowance.learners):
        raise _too_many_learners(f"Your network address has brought {_counted(allowance.learners, 'new learner')} in this hour")
    everybody = allowance.learners * ADDRESSES
    if not _spend(session, "learners", EVERYBODY, everybody):
        raise _too_many_learners(f"This site has seen {_counted(everybody, 'new learner')} in this hour")


def spend_answer(session: Session, learner_id: str, allowance: Allowance) -> None:
    """Count an answer that is about to be stored. Raises TooManyAnswers, and then the transaction has to be undone."""
    for window, words, most in ((HOUR, "hour", allowance.answers), (WEEK, "week", allowance.answers * HOURS_A_WEEK)):
        since = datetime.now(UTC) - window
        mine = select(attempts.c.created_at).where(attempts.c.learner_id == learner_id, attempts.c.created_at > since)
        first = session.execute(mine.order_by(attempts.c.created_at.desc()).offset(most - 1).limit(1)).scalar_one_or_none()
        if first is not None:
            raise _too_many_answers(f"You have sent {_counted(most, 'answer')} in the last {words}", first - since)
    together = allowance.answers * SHARING
    if not _spend(session, "answers", allowance.client, together):
        come = f"{_counted(together, 'answer')} have come from your network address in this hour"
        raise _too_many_answers(come, _rest_of_hour())


def _spend(session: Session, kind: Kind, client: str, most: int) -> bool:
    hour = _hour()
    count = count_up(session, tallies, {"kind": kind, "client": client, "hour": hour}, most)
    if count == 1:
        _forget_before(session, hour)
    return count is not None


def _forget_before(session: Session, hour: int) -> None:
    """Rows of hours gone by, without waiting for those that another transaction is about to remove as well."""
    key = tuple(tallies.primary_key)
    old = select(*key).where(tallies.c.hour < hour).with_for_update(skip_locked=True)
    session.execute(delete(tallies).where(tuple_(*key).in_(old)))


def _hour() -> int:
    return int(datetime.now(UTC).timestamp() // HOUR.total_seconds())


def _rest_of_hour() -> timedelta:
    return HOUR - timedelta(seconds=datetime.now(UTC).timestamp() % HOUR.total_seconds())


def _too_many_answers(what: str, wait: timedelta) -> TooManyAnswers:
    return TooManyAnswers(f"{what}, the most there may be. This one was not kept and cost no try. "
                          f"You can go on in {_in(wait)}.", retry_seconds=_seconds(wait))


def _too_many_learners(what: str) -> TooManyLearners:
    wait = _rest_of_hour()
    return TooManyLearners(f"{what}, the most there may be. Nothing was kept. You can begin in {_in(wait)}. "
                           "A browser or program that keeps its cookie counts once.", retry_seconds=_seconds(wait))


def _seconds(wait: timedelta) -> int:
    return max(1, -int(-wait.total_seconds() // 1))


def _in(wait: timedelta) -> str:
    """Rounded up: 7 minutes, 5 hours, 3 days."""
    for size, unit in ((86_400, "day"), (3600, "hour")):
        if wait.total_seconds() > size:
            return _counted(-(-_seconds(wait) // size), unit)
    return _counted(-(-_seconds(wait) // 60), "minute")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"
