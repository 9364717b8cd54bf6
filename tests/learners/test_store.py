"""What learners leave behind is stored once, in order, and only for them."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.db import Database
from app.learners import store
from app.runs import queue
from app.settings import Settings
from app.tables import metadata, runs
from kernels.spec import Experiment, RunSpec
from tests.databases import migrated, sqlite_url
from tests.learners.writer import PLENTY


def answer(database: Database, learner_id: str, question: str, given: str, submission_id: str) -> store.Attempt:
    """One answer, in a transaction of its own."""
    with database.writing() as session:
        return store.record_attempt(session, learner_id, "ring", question, 0, given, "wrong", submission_id, PLENTY)


def attempts(database: Database, learner_id: str) -> list[store.Attempt]:
    """All of a learner's attempts."""
    with database.reading() as session:
        return store.attempts(session, learner_id)


def rows_by_table(database: Database) -> dict[str, int]:
    """How many rows each table has."""
    with database.reading() as session:
        return {
            name: session.execute(select(func.count()).select_from(table)).scalar_one()
            for name, table in metadata.tables.items()
        }


def test_a_learner_is_made_once_and_keeps_the_first_moment(database: Database) -> None:
    with database.writing() as session:
        first = store.get_or_create_learner(session, "ada", PLENTY)
    with database.writing() as session:
        assert store.get_or_create_learner(session, "ada", PLENTY) == first


def test_attempts_are_numbered_by_question_from_one(database: Database) -> None:
    answer(database, "ada", "first", "a", "1")
    answer(database, "ada", "second", "b", "2")
    answer(database, "ada", "first", "c", "3")
    answer(database, "bob", "first", "d", "4")
    assert [(a.question, a.number, a.answer) for a in attempts(database, "ada")] == [
        ("first", 1, "a"),
        ("second", 1, "b"),
        ("first", 2, "c"),
    ]


def test_attempts_can_be_asked_for_by_lesson(database: Database) -> None:
    answer(database, "ada", "first", "a", "1")
    with database.writing() as session:
        other = store.record_attempt(session, "ada", "zero", "first", 2, "b", "right", "2", PLENTY)
    with database.reading() as session:
        assert store.attempts(session, "ada", "zero") == [other]


def test_what_was_returned_is_what_is_stored(database: Database) -> None:
    told = answer(database, "ada", "first", "48 elements", "1")
    assert attempts(database, "ada") == [told]


def test_a_submission_sent_again_is_stored_once_and_answered_the_same(database: Database) -> None:
    told = answer(database, "ada", "first", "a", "1")
    assert answer(database, "ada", "first", "a", "1") == told
    assert attempts(database, "ada") == [told]


def test_another_answer_in_a_form_restored_by_back_is_another_try(database: Database) -> None:
    answer(database, "ada", "first", "a", "1")
    assert answer(database, "ada", "first", "b", "1").number == 2


def test_a_submission_id_of_somebody_else_neither_blocks_nor_shows_anything(database: Database) -> None:
    answer(database, "ada", "first", "a", "1")
    assert answer(database, "bob", "first", "a", "1").number == 1
    assert len(attempts(database, "ada")) == len(attempts(database, "bob")) == 1


def test_text_that_no_database_can_hold_is_stored_readable(database: Database) -> None:
    answer(database, "ada", "first", "4\x008 \ud800 élan 🙂", "1")
    assert [a.answer for a in attempts(database, "ada")] == ["4\ufffd8 \ufffd élan 🙂"]


def test_an_attempt_that_is_neither_right_nor_wrong_is_refused(database: Database) -> None:
    with pytest.raises(Exception, match="outcome"), database.writing() as session:
        store.record_attempt(session, "ada", "ring", "first", 0, "?", "unclear", "1", PLENTY)  # type: ignore[arg-type]
    assert attempts(database, "ada") == []


def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    def answer_and_fail() -> None:
        with database.writing() as session:
            store.record_attempt(session, "ada", "ring", "first", 0, "a", "wrong", "1", PLENTY)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        answer_and_fail()
    assert rows_by_table(database)["learners"] == 0


def test_the_first_prediction_is_kept(database: Database) -> None:
    with database.writing() as session:
        first = store.record_prediction(session, "ada", "ring", "volumes", "data", PLENTY)
    with database.writing() as session:
        assert store.record_prediction(session, "ada", "ring", "volumes", "tensor", PLENTY) == first
    with database.reading() as session:
        assert store.prediction(session, "ada", "ring", "volumes") == first
        assert store.prediction(session, "ada", "ring", "other") is None
        assert store.prediction(session, "bob", "ring", "volumes") is None


def test_a_visit_keeps_its_first_moment_and_moves_its_last(database: Database) -> None:
    for section in ("hook", "play", "hook"):
        with database.writing() as session:
            store.mark_visited(session, "ada", "ring", section, PLENTY)
    with database.reading() as session:
        play, hook = store.visits(session, "ada")
    assert (play.section, hook.section) == ("play", "hook")
    assert hook.first_at < play.first_at == play.last_at < hook.last_at


def leave_something_everywhere(database: Database, learner_id: str) -> None:
    """A row in every table that knows learners."""
    answer(database, learner_id, "first", f"answer of {learner_id}", "1")
    with database.writing() as session:
        store.record_prediction(session, learner_id, "ring", "volumes", f"guess of {learner_id}", PLENTY)
        store.mark_visited(session, learner_id, "ring", "hook", PLENTY)
        queue.ask(session, learner_id, RunSpec(2, (Experiment("single"),)), settings=Settings())


def test_an_export_is_json_and_has_every_row_of_the_learner_and_no_other(database: Database) -> None:
    leave_something_everywhere(database, "ada")
    leave_something_everywhere(database, "bob")
    with database.reading() as session:
        exported = json.loads(json.dumps(store.export(session, "ada")))
    assert exported["learner"]["id"] == "ada"
    assert [a["answer"] for a in exported["attempts"]] == ["answer of ada"]
    assert [p["answer"] for p in exported["predictions"]] == ["guess of ada"]
    assert [v["section"] for v in exported["visits"]] == ["hook"]
    assert "bob" not in json.dumps(exported)


def test_an_export_of_nobody_is_empty_and_makes_nobody(database: Database) -> None:
    with database.reading() as session:
        exported = store.export(session, "nobody")
    assert exported["learner"] is None
    assert exported["attempts"] == exported["predictions"] == exported["visits"] == []


def test_deleting_removes_every_row_of_the_learner_and_no_other(database: Database) -> None:
    leave_something_everywhere(database, "bob")
    before = rows_by_table(database)
    leave_something_everywhere(database, "ada")
    with database.erasing() as session:
        store.delete(session, "ada")
    assert rows_by_table(database) == before
    assert attempts(database, "bob") != []


def test_every_table_that_names_a_learner_is_emptied_by_a_deletion(database: Database) -> None:
    """A table added later cannot be forgotten: this test fails until it has a row here and the deletion knows it."""
    leave_something_everywhere(database, "ada")
    with database.reading() as session:
        for table in metadata.tables.values():
            if "learner_id" in table.c:
                assert session.execute(select(table.c.learner_id)).scalars().all() == ["ada"], table.name
    with database.erasing() as session:
        store.delete(session, "ada")
    assert {name for name, count in rows_by_table(database).items() if count} == {"probes", "runs", "tallies"}
    with database.reading() as session:  # A run stays, for others may have its link; whose it was is forgotten.
        assert session.execute(select(runs.c.asked_by)).scalars().all() == [None]


@pytest.mark.parametrize("version", [(3, 40, 1), (3, 51, 3)], ids=["rollback journal", "write-ahead log"])
def test_nothing_deleted_can_be_read_in_the_files(tmp_path: Path, version: tuple[int, int, int]) -> None:
    with migrated(sqlite_url(tmp_path), version=version) as database:
        leave_something_everywhere(database, "ada-secret-id")
        leave_something_everywhere(database, "bob-secret-id")
        with database.erasing() as session:
            store.delete(session, "ada-secret-id")
        contents = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir())
    assert b"ada-secret-id" not in contents
    assert b"bob-secret-id" in contents


def test_two_tabs_and_many_learners_lose_and_double_nothing(database: Database) -> None:
    """8 threads: 4 learners, each in two tabs that send the same 10 submissions and 10 of their own."""
    start = threading.Barrier(8)

    def tab(learner_id: str, name: str) -> list[store.Attempt]:
        start.wait()
        both = [answer(database, learner_id, "first", str(n), f"both-{n}") for n in range(10)]
        return both + [answer(database, learner_id, "first", str(n), f"{name}-{n}") for n in range(10)]

    with ThreadPoolExecutor(8) as pool:
        told = {
            learner: [pool.submit(tab, learner, name) for name in ("left", "right")] for learner in ("ada", "bob", "cy", "di")
        }
        for learner, tabs in told.items():
            left, right = (future.result() for future in tabs)
            stored = attempts(database, learner)
            assert [a.number for a in stored] == list(range(1, 31))
            assert left[:10] == right[:10]
            assert {a.submission_id for a in stored} == {a.submission_id for a in left + right}
            assert all(a in stored for a in left + right)


def test_a_learner_who_answers_while_deleting_gets_no_error(database: Database) -> None:
    start = threading.Barrier(2)

    def delete() -> None:
        start.wait()
        for _ in range(20):
            with database.erasing() as session:
                store.delete(session, "ada")

    def keep_answering() -> None:
        start.wait()
        for n in range(20):
            assert answer(database, "ada", "first", str(n), str(n)).answer == str(n)

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(delete), pool.submit(keep_answering)]:
            future.result()
    numbers = [a.number for a in attempts(database, "ada")]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_repeated_submission_keeps_its_first_outcome(database: Database) -> None:
    told = answer(database, "ada", "first", "a", "1")
    with database.writing() as session:
        again = store.record_attempt(session, "ada", "ring", "first", 0, "a", "right", "1", PLENTY)
    assert again == told == replace(again, outcome="wrong")
