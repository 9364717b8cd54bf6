"""Short ways to ask for runs and to read them, one transaction each."""

from __future__ import annotations

import time
from typing import Any

from app.db import Database
from app.errors import StorageRefused
from app.runs import leases, queue, store
from app.runs.leases import Lease, Outcome
from app.runs.queue import Asked
from app.runs.store import Run, State
from app.settings import Settings
from kernels.spec import Experiment, RunSpec
from tests.runs import made_up

SETTINGS = Settings(run_quota=1000, run_seconds=600)
VERSIONS = "v" * 64
PATIENCE = 120.0  # seconds for what takes one, on a machine that has other things to do


def spec(tokens: int = 1, *, strategy: str = "data_parallel", P: int = 2, **given: Any) -> RunSpec:
    """Two ranks; the number of tokens tells one spec of a test from another."""
    return RunSpec(P, (Experiment(strategy, T=tokens, **given),))


def ask(database: Database, learner: str, wanted: RunSpec, *, settings: Settings = SETTINGS, fresh: bool = False) -> Asked:
    with database.writing() as session:
        return queue.ask(session, learner, wanted, settings=settings, fresh=fresh)


def get(database: Database, run_id: str) -> Run:
    with database.reading() as session:
        return store.get(session, run_id)


def cancel(database: Database, run_id: str, learner: str) -> queue.Cancelled:
    with database.writing() as session:
        return queue.cancel(session, run_id, learner)


def position(database: Database, run_id: str) -> int:
    with database.reading() as session:
        return store.position(session, store.get(session, run_id))


def show_worker(database: Database, versions: str = VERSIONS, owner: str = "worker") -> None:
    with database.writing() as session:
        leases.show_worker(session, owner, 1, versions)


def take(database: Database, owner: str = "worker") -> Lease:
    """The run whose turn it is; there must be one."""
    with database.writing() as session:
        lease = leases.take_next(session, owner)
    assert lease is not None
    return lease


def end(database: Database, lease: Lease, state: State = State.DONE, **changes: Any) -> bool:
    """With a made-up report where it is done."""
    given: dict[str, Any] = {}
    if state is State.DONE:
        given = {"report": made_up.outcome(lease.run.spec), "versions": VERSIONS, "repeatable": True}
    with database.writing() as session:
        return leases.end(session, lease, Outcome(state, **{**given, **changes}))


def wait_for(database: Database, run_id: str, *states: State, seconds: float = PATIENCE) -> Run:
    """Until the run is in one of these states."""
    deadline = time.monotonic() + seconds
    while True:
        run = get(database, run_id)
        if run.state in states:
            return run
        assert time.monotonic() < deadline, f"{run.state} after {seconds} s: {run.failure}"
        time.sleep(0.02)


def wait_for_storage(database: Database, run_id: str, *states: State, seconds: float = PATIENCE) -> Run:
    """The same where reading may be refused meanwhile."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return wait_for(database, run_id, *states, seconds=max(0.1, deadline - time.monotonic()))
        except StorageRefused:
            assert time.monotonic() < deadline
            time.sleep(0.1)
