"""A learner's own runs: the latest that fits, never one that was taken back, never another learner's."""

from __future__ import annotations

import json

from app.db import Database
from app.runs import own
from app.runs.store import Run, State
from app.tables import runs
from kernels.spec import RunSpec
from tests.runs import asking
from tests.runs.asking import ask, cancel, spec


def latest(database: Database, learner: str, strategy: str = "data_parallel") -> Run | None:
    def fits(run: RunSpec) -> bool:
        return [one.strategy for one in run.experiments] == [strategy]

    with database.reading() as session:
        return own.latest_that(session, learner, fits)


def waits(database: Database, learner: str, run_id: str) -> bool:
    with database.reading() as session:
        return own.waits_for(session, learner, run_id)


def test_the_latest_run_that_fits_is_found(database: Database) -> None:
    ask(database, "ada", spec(1))
    fitting = ask(database, "ada", spec(2)).run_id
    ask(database, "ada", spec(3, strategy="ddp"))
    found = latest(database, "ada")
    assert found is not None
    assert found.id == fitting
    assert latest(database, "ada", "single") is None
    assert latest(database, "bob") is None


def test_a_joined_run_is_one_s_own_until_it_is_taken_back(database: Database) -> None:
    run_id = ask(database, "ada", spec()).run_id
    assert not waits(database, "bob", run_id)
    assert ask(database, "bob", spec()).run_id == run_id
    assert waits(database, "bob", run_id)
    assert latest(database, "bob") is not None
    cancel(database, run_id, "bob")
    assert not waits(database, "bob", run_id)
    assert latest(database, "bob") is None
    assert waits(database, "ada", run_id)


def test_an_ended_run_is_found_with_its_results(database: Database) -> None:
    asking.show_worker(database)
    ask(database, "ada", spec())
    asking.end(database, asking.take(database))
    found = latest(database, "ada")
    assert found is not None
    assert found.results


def test_a_run_that_was_shown_again_is_the_latest_again(database: Database) -> None:
    asking.show_worker(database)
    first = ask(database, "ada", spec(1)).run_id
    asking.end(database, asking.take(database))
    ask(database, "ada", spec(2))
    assert ask(database, "ada", spec(1)).run_id == first
    found = latest(database, "ada")
    assert found is not None
    assert found.id == first


def test_a_run_that_its_learner_ended_is_still_the_latest(database: Database) -> None:
    run_id = ask(database, "ada", spec()).run_id
    cancel(database, run_id, "ada")
    found = latest(database, "ada")
    assert found is not None
    assert (found.id, found.state) == (run_id, State.CANCELLED)


def test_the_latest_with_a_result_is_found_behind_one_without(database: Database) -> None:
    asking.show_worker(database)
    measured = ask(database, "ada", spec(1)).run_id
    asking.end(database, asking.take(database))
    cancel(database, ask(database, "ada", spec(2)).run_id, "ada")
    with database.reading() as session:
        found = own.latest_that(session, "ada", lambda run: True, measured=True)
    assert found is not None
    assert found.id == measured


def test_a_forgotten_run_is_nobody_s_latest_but_is_kept(database: Database) -> None:
    first, second = (ask(database, "ada", spec(tokens)).run_id for tokens in (1, 2))
    cancel(database, second, "ada")
    for run_id in (first, second):
        with database.writing() as session:
            own.forget(session, "ada", run_id)
    found = latest(database, "ada")
    assert found is not None
    assert found.id == first, "it still waits, so it was not forgotten"
    assert asking.get(database, second).state is State.CANCELLED


def history(database: Database, learner: str) -> list[own.Entry]:
    with database.reading() as session:
        return own.history(session, learner)


def test_the_history_has_all_that_was_asked_for_joined_shown_taken_back_or_forgotten(database: Database) -> None:
    asking.show_worker(database)
    shown = ask(database, "bob", spec(1)).run_id
    asking.end(database, asking.take(database))
    joined = ask(database, "bob", spec(2)).run_id
    assert ask(database, "ada", spec(1)).run_id == shown
    assert ask(database, "ada", spec(2)).run_id == joined
    cancelled, forgotten = (ask(database, "ada", spec(tokens)).run_id for tokens in (3, 4))
    for run_id in (cancelled, forgotten):
        cancel(database, run_id, "ada")
    with database.writing() as session:
        own.forget(session, "ada", forgotten)
    found = history(database, "ada")
    assert [(entry.id, entry.state, entry.asked_first) for entry in found] == [
        (forgotten, State.CANCELLED, True), (cancelled, State.CANCELLED, True), (joined, State.QUEUED, False),
        (shown, State.DONE, False)]
    assert found[0].spec is not None
    assert found[0].spec.experiments == spec(4).experiments
    assert [entry.id for entry in history(database, "bob")] == [joined, shown]
    assert history(database, "eve") == []


def test_an_export_is_json_and_names_a_run_of_another_version(database: Database) -> None:
    run_id = ask(database, "ada", spec()).run_id
    with database.writing() as session:
        session.execute(runs.update().values(spec={"of_another_version": 1}))
    with database.reading() as session:
        [row] = json.loads(json.dumps(own.export(session, "ada")))
    assert (row["id"], row["address"], row["spec"], row["state"]) == (run_id, f"/runs/{run_id}", None, "queued")
    assert row["asked_at"].endswith("+00:00")
