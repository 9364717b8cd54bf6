"""A run has one holder at a time, and a final state is never left, in whatever order things happen."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlalchemy import select

from app.db import Database
from app.runs import leases
from app.runs.leases import Held, Lease, Order
from app.runs.queue import Cancelled
from app.runs.store import State
from app.runs.stored import Progress
from app.runs.worker import OBSERVE_SECONDS, SILENT_SECONDS, Silence
from app.tables import runs
from tests.databases import migrated, sqlite_url
from tests.runs.asking import ask, cancel, end, get, spec, take

MEMORY = Path("/dev/shm")


def take_over(database: Database, owner: str) -> Lease | None:
    """Take up whatever run is held, as if its worker were known to be gone."""
    with database.writing() as session:
        held = leases.held_runs(session)
        return leases.take_over(session, owner, held[0]) if held else None


def release(database: Database, lease: Lease) -> bool:
    with database.writing() as session:
        return leases.release(session, lease)


def beat(database: Database, lease: Lease) -> Order:
    with database.writing() as session:
        return leases.beat(session, lease, Progress("measuring", 1))


def test_a_worker_whose_run_was_taken_up_by_another_can_neither_go_on_nor_end_it(database: Database) -> None:
    asked = ask(database, "ada", spec())
    first = take(database, "one")
    second = take_over(database, "two")
    assert second is not None
    assert (second.take, second.run.losses) == (first.take + 1, 1)
    assert beat(database, first) is Order.DROP
    assert not end(database, first)
    assert not release(database, first)
    assert beat(database, second) is Order.GO_ON
    assert end(database, second)
    assert get(database, asked.run_id).state is State.DONE


def test_a_run_that_showed_a_sign_of_life_meanwhile_is_not_taken_over(database: Database) -> None:
    ask(database, "ada", spec())
    lease = take(database, "one")
    with database.reading() as session:
        seen = leases.held_runs(session)[0]
    beat(database, lease)
    with database.writing() as session:
        assert leases.take_over(session, "two", seen) is None
    assert beat(database, lease) is Order.GO_ON


def test_a_run_that_loses_its_worker_three_times_is_given_up_in_words(database: Database) -> None:
    asked = ask(database, "ada", spec())
    take(database, "one")
    assert take_over(database, "two") is not None
    assert take_over(database, "three") is not None
    assert take_over(database, "four") is None
    run = get(database, asked.run_id)
    assert run.state is State.FAILED
    assert run.failure is not None
    assert "lost 3 times" in run.failure.message


def test_a_cancelled_run_whose_worker_died_is_not_started_again(database: Database) -> None:
    asked = ask(database, "ada", spec())
    take(database, "one")
    assert cancel(database, asked.run_id, "ada") is Cancelled.ENDING
    assert take_over(database, "two") is None
    assert get(database, asked.run_id).state is State.CANCELLED


def test_a_run_that_is_given_back_waits_again_in_its_old_place(database: Database) -> None:
    asked = ask(database, "ada", spec(1))
    ask(database, "ada", spec(2))
    assert release(database, take(database))
    run = get(database, asked.run_id)
    assert (run.state, run.losses, run.progress) == (State.QUEUED, 0, None)
    assert take(database).run.id == asked.run_id


def test_a_run_given_back_that_was_to_be_cancelled_is_cancelled(database: Database) -> None:
    asked = ask(database, "ada", spec())
    lease = take(database)
    cancel(database, asked.run_id, "ada")
    assert release(database, lease)
    assert get(database, asked.run_id).state is State.CANCELLED


def test_a_result_that_arrives_after_the_cancel_was_asked_for_is_kept(database: Database) -> None:
    asked = ask(database, "ada", spec())
    lease = take(database)
    cancel(database, asked.run_id, "ada")
    assert end(database, lease)
    assert get(database, asked.run_id).state is State.DONE


def test_progress_only_grows() -> None:
    steps = [
        Progress("launching", 2), Progress("joining", 2),
        *(Progress("measuring", 2, experiment, "ddp", "fp32", half, repetition, 3)
          for experiment in (0, 1) for half in (0, 1) for repetition in (1, 2, 3)),
    ]
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions)
    assert 0.9 < fractions[-1] < 1


def test_a_silence_counts_only_while_it_could_be_heard() -> None:
    silence, run = Silence(), Held(1, "one", 1, 5)
    clock = 0.0
    while clock < SILENT_SECONDS - OBSERVE_SECONDS:
        assert silence.look([run], clock) == set()
        clock += OBSERVE_SECONDS
    clock += 10 * OBSERVE_SECONDS  # Nobody could look: the database was shut, perhaps also to the run's worker.
    assert silence.look([run], clock) == set()
    assert silence.look([Held(1, "one", 1, 6)], clock + OBSERVE_SECONDS) == set()
    for _ in range(int(SILENT_SECONDS / OBSERVE_SECONDS) + 2):
        clock += OBSERVE_SECONDS
        silent = silence.look([run], clock)
    assert silent == {run}


class Histories(RuleBasedStateMachine):
    """Two learners, three workers, some of them stale, on three specs: any of them may do anything at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.open = ExitStack()
        parent = MEMORY if MEMORY.is_dir() else None
        folder = Path(self.open.enter_context(tempfile.TemporaryDirectory(dir=parent)))
        self.database = self.open.enter_context(migrated(sqlite_url(folder)))
        self.asked: list[str] = []
        self.leases: list[Lease] = []
        self.final: dict[str, tuple[State, object]] = {}

    def teardown(self) -> None:
        self.open.close()

    @rule(learner=st.sampled_from(["ada", "bob"]), tokens=st.integers(1, 3), fresh=st.booleans())
    def ask(self, learner: str, tokens: int, fresh: bool) -> None:
        self.asked.append(ask(self.database, learner, spec(tokens), fresh=fresh).run_id)

    @rule(owner=st.sampled_from(["one", "two", "three"]))
    def take(self, owner: str) -> None:
        with self.database.writing() as session:
            lease = leases.take_next(session, owner)
        if lease is not None:
            self.leases.append(lease)

    @rule(owner=st.sampled_from(["one", "two", "three"]))
    def take_over(self, owner: str) -> None:
        lease = take_over(self.database, owner)
        if lease is not None:
            self.leases.append(lease)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), state=st.sampled_from([State.DONE, State.FAILED, State.TIMED_OUT, State.CANCELLED]))
    def end(self, data: st.DataObject, state: State) -> None:
        end(self.database, data.draw(st.sampled_from(self.leases)), state)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def beat_or_release(self, data: st.DataObject) -> None:
        lease = data.draw(st.sampled_from(self.leases))
        if data.draw(st.booleans()):
            beat(self.database, lease)
        else:
            release(self.database, lease)

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), learner=st.sampled_from(["ada", "bob", "eve"]))
    def cancel(self, data: st.DataObject, learner: str) -> None:
        cancel(self.database, data.draw(st.sampled_from(self.asked)), learner)

    @invariant()
    def final_states_stay_and_a_run_has_one_holder(self) -> None:
        with self.database.reading() as session:
            for row in session.execute(select(runs)):
                state = State(row.state)
                if state.is_final:
                    ending = (state, row.ended_at)
                    assert self.final.setdefault(row.id, ending) == ending
                    assert (row.report is not None) == (state is State.DONE)
                else:
                    assert row.id not in self.final
            for run_id in set(self.asked):
                held = [lease for lease in self.leases if lease.run.id == run_id
                        and session.execute(select(runs.c.id).where(*lease.conditions)).first()]
                assert len(held) <= 1


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=25, stateful_step_count=30, deadline=None,
                                  suppress_health_check=list(HealthCheck))


