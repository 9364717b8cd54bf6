"""Nobody can fill the disk: answers and new learners are counted, and a class behind one address is never refused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy import func, select, update

from app.db import Database
from app.errors import NotNow, TooManyAnswers, TooManyLearners
from app.learners import quotas, store
from app.learners.quotas import Allowance
from app.tables import attempts, learners, tallies

HERE = Allowance("here", answers=3, learners=4)
THERE = Allowance("there", answers=3, learners=4)


@pytest.fixture(autouse=True)
def one_hour(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Tallies of one hour, whatever the clock says; a test lets the next one begin by raising the number."""
    hour = [490_000]
    monkeypatch.setattr(quotas, "_hour", lambda: hour[0])
    return hour


def answer(database: Database, learner_id: str, number: int, allowance: Allowance = HERE) -> store.Attempt:
    """One answer in a transaction of its own; each number is a form of its own."""
    with database.writing() as session:
        return store.record_attempt(session, learner_id, "ring", "first", 0, "a", "wrong", str(number), allowance)


def begin(database: Database, learner_id: str, allowance: Allowance = HERE) -> None:
    with database.writing() as session:
        store.mark_visited(session, learner_id, "ring", "hook", allowance)


def count(database: Database, table: object = attempts) -> int:
    with database.reading() as session:
        return session.execute(select(func.count()).select_from(table)).scalar_one()  # type: ignore[call-overload]


def grow_older(database: Database, by: timedelta) -> None:
    """As if all answers had been sent so much earlier."""
    with database.writing() as session:
        for row in session.execute(select(attempts.c.id, attempts.c.created_at)).all():
            session.execute(update(attempts).where(attempts.c.id == row.id).values(created_at=row.created_at - by))


def test_one_answer_more_than_the_quota_is_refused_with_when_to_go_on_and_leaves_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime.now(UTC)
    for module in (quotas, store):
        monkeypatch.setattr(module, "datetime", SimpleNamespace(now=lambda zone: now))
    for number in range(3):
        answer(database, "ada", number)
    grow_older(database, timedelta(minutes=53, seconds=30))
    with pytest.raises(TooManyAnswers, match=r"3 answers in the last hour.*cost no try.*go on in 7 minutes") as told:
        answer(database, "ada", 3)
    assert told.value.retry_seconds == 390
    assert count(database) == 3


def test_an_hour_later_the_learner_goes_on(database: Database) -> None:
    for number in range(3):
        answer(database, "ada", number)
    grow_older(database, timedelta(hours=1, seconds=1))
    assert answer(database, "ada", 3).number == 4


def test_a_week_has_an_end_too_and_says_so_in_days(database: Database) -> None:
    for number in range(30):
        answer(database, "ada", number)
        grow_older(database, timedelta(hours=1))
    with pytest.raises(TooManyAnswers, match=r"30 answers in the last week.*go on in 6 days"):
        answer(database, "ada", 30)


def test_a_form_sent_again_is_no_further_answer_even_beyond_the_quota(database: Database) -> None:
    told = [answer(database, "ada", number) for number in range(3)]
    assert [answer(database, "ada", number) for number in range(3)] == told
    assert count(database) == 3


def test_whoever_has_used_up_the_quota_keeps_nobody_else_from_answering(database: Database) -> None:
    for number in range(3):
        answer(database, "ada", number)
    assert answer(database, "bob", 0).number == 1


def test_a_hundred_learners_at_one_address_each_use_their_full_quota_and_then_the_address_has(database: Database) -> None:
    allowance = Allowance("school", answers=2, learners=1000)
    for learner in range(quotas.SHARING):
        for number in range(2):
            answer(database, f"learner-{learner}", number, allowance)
    with pytest.raises(TooManyAnswers, match=r"200 answers have come from your network address in this hour"):
        answer(database, "one-more", 0, allowance)
    assert answer(database, "one-more", 0, replace(allowance, client="library")).number == 1


def test_new_learners_are_counted_by_address_whatever_they_leave_first(database: Database, one_hour: list[int]) -> None:
    answer(database, "a", 0)
    begin(database, "b")
    with database.writing() as session:
        store.record_prediction(session, "c", "ring", "volumes", "data", HERE)
    with database.writing() as session:
        store.get_or_create_learner(session, "d", HERE)
    with pytest.raises(TooManyLearners, match=r"address has brought 4 new learners in this hour.*begin in \d+ minute"):
        begin(database, "e")
    assert count(database, learners) == 4
    begin(database, "a")  # Whoever has begun is not new.
    begin(database, "e", THERE)
    one_hour[0] += 1
    begin(database, "f")


def test_many_addresses_together_have_an_end_too(database: Database) -> None:
    for number in range(10):
        begin(database, f"learner-{number}", Allowance(f"address-{number}", answers=3, learners=1))
    with pytest.raises(TooManyLearners, match="This site has seen 10 new learners in this hour"):
        begin(database, "one-more", Allowance("another", answers=3, learners=1))


def test_only_the_hour_that_counts_is_kept(database: Database, one_hour: list[int]) -> None:
    answer(database, "ada", 0)
    begin(database, "bob", THERE)
    one_hour[0] += 1
    begin(database, "cy")
    with database.reading() as session:
        assert set(session.execute(select(tallies.c.hour)).scalars()) == {one_hour[0]}


def test_a_quota_is_not_spent_twice_by_many_at_once(database: Database) -> None:
    """8 new learners at once where 4 may begin, and 8 answers at once of one learner who may send 3."""

    def taken(action: object, number: int) -> bool:
        try:
            action(number)  # type: ignore[operator]
        except NotNow:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        begun = list(pool.map(lambda number: taken(lambda n: begin(database, f"learner-{n}"), number), range(8)))
        answered = list(pool.map(lambda number: taken(lambda n: answer(database, "ada", n, THERE), number), range(8)))
    assert (sum(begun), sum(answered)) == (4, 3)
    assert (count(database, learners), count(database)) == (5, 3)
