"""Old runs go, with whoever asked for them; what would be shown to the next stays, and what was counted stays counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select

from app.db import Database
from app.runs import retention, store
from app.runs.retention import AT_ONCE
from app.runs.store import State
from app.tables import run_requests, runs
from tests.runs.asking import ask, cancel, end, show_worker, spec, take


def sweep(database: Database, before: datetime | None = None) -> int:
    """By a moment at which all runs that have ended are old, unless another is given."""
    with database.writing() as session:
        return retention.sweep(session, before or datetime.now(UTC) + timedelta(minutes=1))


def left(database: Database) -> set[str]:
    with database.reading() as session:
        return set(session.execute(select(runs.c.id)).scalars())


def made(database: Database, tokens: int, state: State = State.DONE, *, fresh: bool = False, **changes: bool) -> str:
    """A run that has ended."""
    run_id = ask(database, "ada", spec(tokens), fresh=fresh).run_id
    end(database, take(database), state, **changes)
    return run_id


def test_old_runs_go_but_for_the_newest_result_of_each_spec_and_those_under_way(database: Database) -> None:
    show_worker(database)
    gone = {made(database, 1), made(database, 1, State.FAILED, fresh=True), made(database, 2, repeatable=False)}
    kept = {made(database, 1, fresh=True), made(database, 3)}
    ask(database, "bob", spec(1))
    under_way = {ask(database, "ada", spec(tokens)).run_id for tokens in (4, 5)}
    take(database)
    assert sweep(database) == len(gone)
    assert sweep(database) == 0
    assert left(database) == kept | under_way
    with database.reading() as session:
        assert session.execute(select(func.count()).where(run_requests.c.run_id.in_(gone))).scalar_one() == 0


def test_a_result_that_other_versions_would_not_show_again_goes(database: Database) -> None:
    show_worker(database)
    made(database, 1)
    show_worker(database, "another version", "another worker")
    assert sweep(database) == 1


def test_a_run_that_has_not_ended_for_long_enough_stays(database: Database) -> None:
    made(database, 1, State.FAILED)
    assert sweep(database, datetime.now(UTC) - timedelta(days=1)) == 0
    assert len(left(database)) == 1


def test_what_was_counted_stays_counted(database: Database) -> None:
    show_worker(database)
    for tokens in (1, 2):
        ask(database, "ada", spec(tokens))
        end(database, take(database), repeatable=False, seconds={"launching": 0.5, "warming_up": 0.25})
    with database.writing() as session:
        session.execute(runs.update().values(losses=1))
    made(database, 3, State.TIMED_OUT)
    with database.reading() as session:
        before = store.figures(session)
    assert sweep(database) == 3
    for _ in range(2):  # The second time the rows of what was swept are there already.
        with database.reading() as session:
            after = store.figures(session)
        assert (after, after.losses, after.counts["launching"]) == (before, 2, 2)
        made(database, 4, State.FAILED)
        with database.reading() as session:
            before = store.figures(session)
        sweep(database)


def test_many_are_deleted_in_several_transactions(database: Database) -> None:
    for tokens in range(1, AT_ONCE + 3):
        cancel(database, ask(database, "ada", spec(tokens)).run_id, "ada")
    assert [sweep(database) for _ in range(3)] == [AT_ONCE, 2, 0]
