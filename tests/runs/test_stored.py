"""A row of every format there ever was is read; one in another shape ends in plain words and stops nobody."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select

from app.db import Database
from app.errors import RunUnreadable
from app.runs import leases, own
from app.runs.store import State, run_of
from app.runs.stored import FORMAT, UNREADABLE, Failure, Progress
from app.tables import runs
from kernels.spec import to_json
from tests.runs.asking import ask, end, get, show_worker, spec, take

FORMATS = sorted(Path(__file__).parent.glob("stored/format-*.json"))


def frozen(file: Path) -> dict[str, dict[str, Any]]:
    """Rows as they were once stored, by state."""
    return {row["state"]: row for row in json.loads(file.read_text())}


def alter(database: Database, run_id: str, **values: Any) -> None:
    """As another version would have written it."""
    with database.writing() as session:
        session.execute(runs.update().where(runs.c.id == run_id).values(**values))


def test_the_newest_format_has_frozen_rows() -> None:
    assert [file.stem for file in FORMATS] == [f"format-{number}" for number in range(1, FORMAT + 1)]


@pytest.mark.parametrize("file", FORMATS, ids=lambda file: file.stem)
def test_what_a_format_stored_is_still_read(database: Database, file: Path) -> None:
    rows, number = frozen(file), int(file.stem.removeprefix("format-"))
    show_worker(database)
    done = ask(database, "ada", spec(1)).run_id
    end(database, take(database))
    failed = ask(database, "ada", spec(2)).run_id
    end(database, take(database), State.FAILED)
    running = ask(database, "ada", spec(3)).run_id
    take(database)
    for run_id, state in ((done, "done"), (failed, "failed"), (running, "running")):
        alter(database, run_id, format=number, **rows[state])
    read = get(database, done)
    assert read.report is not None
    assert [result["verdict"] for result in read.results] == ["equal", "equal"]
    assert [result["measured"]["payload_bytes_by_rank"] for result in read.results] == [[128, 128], [64, 64]]
    assert get(database, failed).failure == Failure("Rank 1 stopped.", 1, "exit code 1", "measuring data_parallel",
                                                    "the last line")
    assert get(database, running).progress == Progress("measuring", 2, 1, "ring_all_reduce", "fp32", 1, 2, 3)


def changed(whole: Any) -> Iterator[Any]:
    """The same with one key more or one key less, at each place."""
    places: list[tuple[Any, ...]] = [()]
    while places:
        place = places.pop()
        here = part(whole, place)
        places += [(*place, key) for key in (here if isinstance(here, dict) else range(len(here)))
                   if isinstance(here[key], dict | list)]
        if isinstance(here, dict):
            for key in (*here, "of_another_version"):
                copied = copy.deepcopy(whole)
                there = part(copied, place)
                there.pop(key) if key in there else there.update({key: 1})
                yield copied


def part(whole: Any, place: tuple[Any, ...]) -> Any:
    """What lies at a place, given by the keys that lead there."""
    for key in place:
        whole = whole[key]
    return whole


def test_no_missing_or_additional_key_anywhere_is_more_than_a_run_without_a_result(database: Database) -> None:
    """Each single change of what is stored: the run is read all the same, has ended in words, or is said to be unreadable."""
    asked = ask(database, "ada", spec())
    take(database)
    with database.reading() as session:
        row = session.execute(select(runs).where(runs.c.id == asked.run_id)).one()
    outcomes = set()
    for state, stored in frozen(FORMATS[-1]).items():
        for altered in changed({"spec": stored["spec"], "progress": stored["progress"], "failure": stored["failure"],
                                "report": stored["report"]}):
            now = SimpleNamespace(**{**row._mapping, "spec": None, **altered, "state": state})
            try:
                run = run_of(now)  # type: ignore[arg-type]
            except RunUnreadable:
                outcomes.add("unreadable")
            else:
                outcomes.add(run.state.value)
                assert (run.state is State.DONE) == bool(run.results)
                assert run.state.is_final or run.progress is not None
    assert outcomes == {"unreadable", "done", "failed", "running"}


NEWER = [{"spec": {**to_json(spec()), "of_another_version": 1}}, {"format": FORMAT + 1},
         {"spec": to_json(spec(strategy="of_another_version"))}, {"spec": []}]


@pytest.mark.parametrize("newer", NEWER, ids=["a key", "a format", "a strategy", "a shape"])
def test_a_waiting_run_that_cannot_be_read_ends_in_words_and_the_next_one_starts(
    database: Database, newer: dict[str, Any]
) -> None:
    first, second = ask(database, "ada", spec(1)).run_id, ask(database, "ada", spec(2)).run_id
    alter(database, first, **newer)
    with pytest.raises(RunUnreadable, match="another version of World Size"):
        get(database, first)
    assert take(database).run.id == second
    assert stored_of(database, first) == ("failed", asdict(UNREADABLE))


def test_a_run_that_cannot_be_read_and_lost_its_worker_ends_too(database: Database) -> None:
    run_id = ask(database, "ada", spec()).run_id
    take(database)
    alter(database, run_id, **NEWER[0])
    with database.writing() as session:
        assert leases.take_over(session, "two", leases.held_runs(session)[0]) is None
    assert stored_of(database, run_id) == ("failed", asdict(UNREADABLE))


def test_a_result_that_cannot_be_read_has_ended_in_words_and_is_given_to_nobody(database: Database) -> None:
    show_worker(database)
    run_id = ask(database, "ada", spec()).run_id
    end(database, take(database))
    alter(database, run_id, report={"of_another_version": 1})
    run = get(database, run_id)
    assert (run.state, run.results, run.report, run.failure) == (State.FAILED, (), None, UNREADABLE)
    assert ask(database, "bob", spec()).shared == "new"


def test_a_learner_s_latest_run_is_found_behind_one_that_cannot_be_read(database: Database) -> None:
    show_worker(database)
    good, worse, bad = (ask(database, "ada", spec(tokens)).run_id for tokens in (1, 2, 3))
    for _ in range(2):
        end(database, take(database))
    alter(database, worse, report={})
    alter(database, bad, spec={})
    with database.reading() as session:
        latest = own.latest_that(session, "ada", lambda run: True)
        measured = own.latest_that(session, "ada", lambda run: True, measured=True)
    assert (latest and latest.id, measured and measured.id) == (worse, good)


def stored_of(database: Database, run_id: str) -> tuple[str, Any]:
    """State and failure as they stand in the table."""
    with database.reading() as session:
        return tuple(session.execute(select(runs.c.state, runs.c.failure).where(runs.c.id == run_id)).one())
