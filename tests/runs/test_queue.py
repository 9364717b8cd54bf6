"""Asking for runs: shared, counted, refused and taken back, whoever else asks at the same moment."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy import func, select, update

from app.db import Database
from app.errors import QueueFull, QuotaExceeded, RunNotFound, RunRejected
from app.runs import leases, queue, sharing, store
from app.runs.queue import Cancelled
from app.runs.store import State, Waiting, service_order
from app.settings import Settings
from app.tables import run_requests, runs
from kernels.spec import Experiment, RunSpec
from tests.runs.asking import ask, cancel, end, get, position, show_worker, spec, take

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_run_is_queued_with_an_id_nobody_can_guess_and_the_time_limit_of_the_settings(database: Database) -> None:
    asked = ask(database, "ada", spec(), settings=Settings(run_seconds=30))
    run = get(database, asked.run_id)
    assert asked.shared == "new"
    assert len(asked.run_id) == 22  # 128 random bits in base 64
    assert run.state is State.QUEUED
    assert run.spec == replace(spec(), time_limit_seconds=30)
    assert (run.asked_by, run.progress, run.results, run.failure) == ("ada", None, (), None)


def test_an_id_that_was_never_given_is_not_found(database: Database) -> None:
    with pytest.raises(RunNotFound):
        get(database, "nothing")
    with pytest.raises(RunNotFound):
        cancel(database, "nothing", "ada")


def test_the_same_run_under_way_is_joined_waiting_or_running_also_when_fresh_is_wanted(database: Database) -> None:
    show_worker(database)
    first = ask(database, "ada", spec())
    assert ask(database, "bob", spec()) == queue.Asked(first.run_id, "joined")
    take(database)
    assert ask(database, "eve", spec(), fresh=True) == queue.Asked(first.run_id, "joined")
    assert ask(database, "bob", spec(2)).shared == "new"


def test_an_earlier_result_is_given_at_once_and_run_again_measures_anew(database: Database) -> None:
    show_worker(database)
    first = ask(database, "ada", spec())
    end(database, take(database))
    assert ask(database, "bob", spec()) == queue.Asked(first.run_id, "earlier")
    again = ask(database, "bob", spec(), fresh=True)
    assert again.shared == "new"
    end(database, take(database))
    assert ask(database, "eve", spec()) == queue.Asked(again.run_id, "earlier")


def test_a_result_of_other_versions_or_without_a_verdict_is_not_given_again(database: Database) -> None:
    show_worker(database)
    ask(database, "ada", spec())
    end(database, take(database), repeatable=False)
    ask(database, "ada", spec(2))
    end(database, take(database))
    assert ask(database, "bob", spec()).shared == "new"
    assert ask(database, "bob", spec(2)).shared == "earlier"
    show_worker(database, "another version", "another worker")
    assert ask(database, "bob", spec(2)).shared == "new"


@pytest.mark.parametrize("state", [State.FAILED, State.TIMED_OUT, State.CANCELLED])
def test_a_run_without_a_result_is_not_given_again(database: Database, state: State) -> None:
    show_worker(database)
    ask(database, "ada", spec())
    end(database, take(database), state)
    assert ask(database, "ada", spec()).shared == "new"


def test_specs_that_measure_the_same_have_one_key() -> None:
    key = sharing.spec_key(spec())
    assert sharing.spec_key(replace(spec(), time_limit_seconds=5)) == key
    torch_gpipe = spec(strategy="pipeline_torch")
    assert sharing.spec_key(spec(strategy="pipeline_torch", options={"schedule": "gpipe"})) == sharing.spec_key(torch_gpipe)
    others = [spec(2), spec(P=3), spec(H=8), spec(L=4), replace(spec(), seed=1), replace(spec(), purpose="timing"),
              RunSpec(2, spec().experiments * 2), spec(strategy="ddp")]
    assert len({key, *map(sharing.spec_key, others)}) == 1 + len(others)


def test_a_hundred_learners_with_ten_settings_start_ten_runs_and_lose_none(database: Database) -> None:
    show_worker(database)
    with ThreadPoolExecutor(20) as pool:
        asked = list(pool.map(lambda n: ask(database, f"learner {n}", spec(n % 10 + 1)), range(100)))
    assert Counter(one.shared for one in asked) == {"new": 10, "joined": 90}
    for number, one in enumerate(asked):
        assert number % 10 + 1 == get(database, one.run_id).spec.experiments[0].T
    with database.reading() as session:
        assert session.execute(select(func.count()).select_from(runs)).scalar_one() == 10
        assert session.execute(select(func.count()).select_from(run_requests)).scalar_one() == 100


ASKER = """
import sys
from app.db import open_database
from app.runs import queue
from app.settings import Settings
from kernels.spec import Experiment, RunSpec
database = open_database(sys.argv[1])
with database.writing() as session:
    asked = queue.ask(session, "ada", RunSpec(2, (Experiment("data_parallel"),)), settings=Settings())
    if sys.argv[2] == "before":
        print(asked.run_id, flush=True); sys.stdin.read()
print(asked.run_id, flush=True); sys.stdin.read()
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_killed_while_it_asks_has_asked_or_has_not(database: Database, database_url: str, moment: str) -> None:
    """What the web process has acknowledged is stored, and what it has not is not there by half."""
    command = [sys.executable, "-c", ASKER, database_url, moment]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asker:
        assert asker.stdout is not None
        run_id = asker.stdout.readline().strip()
        asker.kill()
    if moment == "after":
        assert get(database, run_id).state is State.QUEUED
    else:
        with pytest.raises(RunNotFound):
            get(database, run_id)
    assert ask(database, "ada", spec()).shared == ("joined" if moment == "after" else "new")


def test_the_quota_counts_runs_of_ones_own_and_says_when_to_come_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(run_quota=2)
    show_worker(database)
    first = ask(database, "ada", spec(1), settings=settings)
    ask(database, "ada", spec(2), settings=settings)
    now = datetime.now(UTC)
    long_ago = now - timedelta(minutes=50)
    monkeypatch.setattr(queue, "datetime", SimpleNamespace(now=lambda zone: now))
    with database.writing() as session:
        session.execute(update(runs).where(runs.c.id == first.run_id).values(asked_at=long_ago))
    with pytest.raises(QuotaExceeded, match=r"2 runs in the last hour, and 2 .* can start in 10 minutes") as refused:
        ask(database, "ada", spec(3), settings=settings)
    assert refused.value.retry_seconds == 600
    assert ask(database, "ada", spec(2), settings=settings).shared == "joined"
    assert ask(database, "bob", spec(3), settings=settings).shared == "new"


@pytest.mark.parametrize("state", [state for state in State if state.is_final])
def test_the_quota_charges_for_results_and_for_nothing_else(database: Database, state: State) -> None:
    settings = Settings(run_quota=1)
    show_worker(database)
    ask(database, "ada", spec(1), settings=settings)
    end(database, take(database), state)
    if state is not State.DONE:
        assert ask(database, "ada", spec(2), settings=settings).shared == "new"
        return
    with pytest.raises(QuotaExceeded, match="You have started 1 run in the last hour"):
        ask(database, "ada", spec(2), settings=settings)


def test_asking_and_cancelling_costs_no_run_but_has_a_limit_of_its_own(database: Database) -> None:
    settings = Settings(run_quota=2)
    for tokens in range(1, 2 * queue.ASKED_TIMES + 1):
        cancel(database, ask(database, "ada", spec(tokens), settings=settings).run_id, "ada")
    with pytest.raises(QuotaExceeded, match=r"You have asked for 6 runs in the last hour, and 6 .*brought no result"):
        ask(database, "ada", spec(20), settings=settings)
    assert ask(database, "bob", spec(20), settings=settings).shared == "new"


def test_where_nobody_may_start_a_run_that_is_what_is_said(database: Database) -> None:
    with pytest.raises(QuotaExceeded, match="Here nobody may start a run"):
        ask(database, "ada", spec(), settings=Settings(run_quota=0))


def test_a_quota_is_not_spent_twice_by_requests_of_the_same_moment(database: Database) -> None:
    def try_it(number: int) -> bool:
        try:
            ask(database, "ada", spec(number), settings=Settings(run_quota=3))
        except QuotaExceeded:
            return False
        return True

    with ThreadPoolExecutor(10) as pool:
        assert sum(pool.map(try_it, range(1, 11))) == 3


def test_a_full_queue_takes_nobody_but_those_who_join(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MOST_QUEUED", 2)
    monkeypatch.setattr(queue, "KEPT_FOR_KNOWN", 0)
    ask(database, "ada", spec(1))
    ask(database, "ada", spec(2))
    with pytest.raises(QueueFull, match="2 runs are waiting"):
        ask(database, "bob", spec(3))
    assert ask(database, "bob", spec(2)).shared == "joined"


def test_newcomers_alone_do_not_fill_the_queue(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MOST_QUEUED", 3)
    monkeypatch.setattr(queue, "KEPT_FOR_KNOWN", 1)
    ask(database, "ada", spec(1))
    end(database, take(database), State.FAILED)
    ask(database, "a stranger", spec(2))
    ask(database, "another", spec(3))
    with pytest.raises(QueueFull, match="2 runs are waiting"):
        ask(database, "a third", spec(4))
    assert ask(database, "ada", spec(5)).shared == "new"
    with pytest.raises(QueueFull, match="3 runs are waiting"):
        ask(database, "ada", spec(6))


def test_one_learner_has_ten_runs_waiting_at_most_and_may_join_others(database: Database) -> None:
    asked = [ask(database, "ada", spec(tokens)).run_id for tokens in range(1, queue.MOST_WAITING + 1)]
    others = ask(database, "bob", spec(20)).run_id
    with pytest.raises(QueueFull, match="10 runs of yours are waiting"):
        ask(database, "ada", spec(11))
    assert ask(database, "ada", spec(20)) == queue.Asked(others, "joined")
    cancel(database, asked[3], "ada")
    assert ask(database, "ada", spec(11)).shared == "new"


REFUSED = [
    (spec(P=9), Settings(), "P"),
    (spec(P=4), Settings(max_world_size=3), "P"),
    (spec(tokens=65), Settings(), "T"),
    (spec(strategy="magic"), Settings(), "strategy"),
    (RunSpec(2, ()), Settings(), "experiments"),
    (RunSpec(2, (Experiment("single"),) * 13), Settings(), "experiments"),
    (replace(spec(), repetitions=1000), Settings(), "repetitions"),
    (replace(spec(), warmup_steps=1000), Settings(), "warmup_steps"),
    (replace(spec(), purpose="mining"), Settings(), "purpose"),
    (spec(), Settings(runs=False), "runs"),
]


def test_what_cannot_run_is_rejected_with_the_field(database: Database) -> None:
    for wanted, settings, field in REFUSED:
        with pytest.raises(RunRejected) as rejected:
            ask(database, "ada", wanted, settings=settings)
        assert [fault.field for fault in rejected.value.faults] == [field]
    with database.reading() as session:
        assert session.execute(select(func.count()).select_from(runs)).scalar_one() == 0


def test_experiments_that_cannot_run_at_these_values_are_left_out_with_the_reason() -> None:
    three = [Experiment("data_parallel"), Experiment("tensor_parallel"), Experiment("pipeline_gpipe")]
    together, left_out = sharing.runnable(3, three)
    assert together is not None
    assert [one.strategy for one in together.experiments] == ["data_parallel", "pipeline_gpipe"]
    assert [(one.strategy, [fault.field for fault in faults]) for one, faults in left_out] == [("tensor_parallel", ["P"])]
    assert sharing.runnable(3, [Experiment("tensor_parallel")])[0] is None


def test_whoever_waits_alone_ends_the_run_by_cancelling(database: Database) -> None:
    asked = ask(database, "ada", spec())
    assert cancel(database, asked.run_id, "bob") is Cancelled.NOT_YOURS
    assert cancel(database, asked.run_id, "ada") is Cancelled.ENDED
    run = get(database, asked.run_id)
    assert run.state is State.CANCELLED
    assert run.failure is not None
    assert "waited for its turn" in run.failure.message
    assert cancel(database, asked.run_id, "ada") is Cancelled.OVER


def test_a_shared_run_goes_on_until_the_last_one_cancels(database: Database) -> None:
    asked = ask(database, "ada", spec())
    ask(database, "bob", spec())
    lease = take(database)
    assert cancel(database, asked.run_id, "ada") is Cancelled.SHARED
    with database.reading() as session:
        assert leases.orders(session, lease) is leases.Order.GO_ON
    assert cancel(database, asked.run_id, "bob") is Cancelled.ENDING
    with database.reading() as session:
        assert leases.orders(session, lease) is leases.Order.CANCEL
    assert ask(database, "eve", spec()).shared == "new"  # Nobody joins a run that is on its way out.


def test_whoever_leaves_takes_everything_back_and_ends_what_nobody_else_waits_for(database: Database) -> None:
    running, waiting, shared, bobs = (ask(database, who, spec(tokens)).run_id
                                      for tokens, who in enumerate(("ada", "ada", "ada", "bob"), 1))
    lease = take(database)
    assert lease.run.id == running
    ask(database, "bob", spec(3))
    with database.writing() as session:
        queue.leave(session, "ada")
        queue.leave(session, "nobody")
    assert get(database, running).cancel_requested
    assert [get(database, run_id).state for run_id in (waiting, shared, bobs)] == [State.CANCELLED, State.QUEUED, State.QUEUED]
    assert not get(database, shared).cancel_requested


def test_whoever_withdrew_and_asks_again_waits_again(database: Database) -> None:
    asked = ask(database, "ada", spec())
    ask(database, "bob", spec())
    assert cancel(database, asked.run_id, "ada") is Cancelled.SHARED
    ask(database, "ada", spec())
    assert cancel(database, asked.run_id, "bob") is Cancelled.SHARED


def test_joining_and_cancelling_at_the_same_moment_leaves_nobody_with_a_dead_run(database: Database) -> None:
    for tokens in range(1, 9):
        asked = ask(database, "ada", spec(tokens))
        with ThreadPoolExecutor(2) as pool:
            joining = pool.submit(ask, database, "bob", spec(tokens))
            cancelling = pool.submit(cancel, database, asked.run_id, "ada")
        joined, cancelled = joining.result(), cancelling.result()
        assert get(database, joined.run_id).state is State.QUEUED
        assert (joined.shared, cancelled) in (("joined", Cancelled.SHARED), ("new", Cancelled.ENDED))


def test_learners_take_turns_and_a_place_in_the_queue_counts_from_one(database: Database) -> None:
    hers = [ask(database, "ada", spec(tokens)).run_id for tokens in range(1, 6)]
    first = take(database)
    assert first.run.id == hers[0]
    his = ask(database, "bob", spec(10)).run_id
    assert position(database, his) == 1
    assert [position(database, run_id) for run_id in hers] == [0, 2, 3, 4, 5]
    taken = [take(database).run.id for _ in range(2)]
    later = ask(database, "bob", spec(11)).run_id
    assert taken == [his, hers[1]]
    assert [take(database).run.id for _ in range(2)] == [later, hers[2]]


def waiting(*asked: tuple[str | None, float]) -> list[Waiting]:
    """Runs 1, 2, ... of these learners, asked for so many seconds after NOW."""
    return [Waiting(number, learner, NOW + timedelta(seconds=at)) for number, (learner, at) in enumerate(asked, 1)]


def test_the_order_of_service_is_one_run_a_learner_then_the_next() -> None:
    asked = waiting(("ada", 0), ("ada", 0), ("bob", 0), ("eve", 0), (None, 0), (None, 0))
    served = {"ada": NOW, "eve": NOW - timedelta(seconds=1)}
    assert service_order(asked, served) == [3, 5, 6, 4, 1, 2]


def test_newer_strangers_do_not_overtake_who_was_served_long_ago() -> None:
    strangers = [(f"stranger {number}", number / 10) for number in range(1, 101)]
    asked = waiting(("ada", 0), *strangers)
    assert service_order(asked, {"ada": NOW - timedelta(hours=1)})[0] == 1


def test_whoever_waits_is_overtaken_for_a_turn_and_no_longer() -> None:
    """Strangers who come one a second for ever go before the second run of a learner only while it is younger than a turn."""
    strangers = [(f"stranger {number}", float(number)) for number in range(1, 1000)]
    asked = waiting(("ada", 0), ("ada", 0), ("ada", 0), *strangers)
    order = service_order(asked, {"ada": NOW - timedelta(seconds=30)})
    assert [order.index(number) for number in (1, 2, 3)] == [29, 90, 151]


def test_the_figures_count_states_and_seconds_and_name_the_worker_that_is_away(database: Database) -> None:
    with database.reading() as session:
        assert store.worker_away_since(session, datetime.now(UTC)) is not None
    show_worker(database)
    for tokens in range(1, 4):
        ask(database, "ada", spec(tokens))
    end(database, take(database), seconds={"launching": 0.5, "warming_up": 0.25, "measuring": 0.125})
    end(database, take(database), State.FAILED)
    with database.reading() as session:
        figures = store.figures(session)
        assert store.worker_away_since(session, datetime.now(UTC)) is None
        assert store.worker_away_since(session, datetime.now(UTC) + timedelta(minutes=1)) is not None
    assert figures.queue_depth == 1
    assert (figures.by_state[State.DONE], figures.by_state[State.FAILED], figures.by_state[State.RUNNING]) == (1, 1, 0)
    assert (figures.seconds["launching"], figures.counts["launching"], figures.counts["queued"]) == (0.5, 1, 2)
