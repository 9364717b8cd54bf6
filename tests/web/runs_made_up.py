"""Runs for the tests of pages: asked for through the site, then ended as a test wants, without a launch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx import Response

from app.db import Database
from app.runs import leases, store
from app.runs.leases import Lease, Outcome
from app.runs.store import Run, State
from app.runs.stored import Failure, Progress
from app.theory.predictions import predict
from kernels.spec import HEADER_BYTES, ExperimentReport, RunReport, RunSpec, to_json
from tests.runs import made_up
from tests.runs.asking import VERSIONS, show_worker

EXPERIMENT = "split-three-ways/three-cuts"
HTMX = {"HX-Request": "true"}
RUN_ID = re.compile(r"/runs/([A-Za-z0-9_-]{22})")


def press(client: TestClient, *, htmx: bool = True, live: Mapping[str, str] | None = None, **values: int) -> Response:
    """The button of the flagship's experiment: `values` are those of the page, `live` those of the figure's own form."""
    form = {"experiment": EXPERIMENT, **{name: str(value) for name, value in values.items()}, **(live or {})}
    response: Response = client.post("/runs", data=form, headers=HTMX if htmx else {})
    return response


def run_id_of(response: Response) -> str:
    found = RUN_ID.search(response.headers.get("location", "") + response.text)
    assert found is not None, response.text[:500]
    return found[1]


def database_of(app: FastAPI) -> Database:
    database: Database = app.state.site.database
    return database


def read(app: FastAPI, run_id: str) -> Run:
    with database_of(app).reading() as session:
        return store.get(session, run_id)


def take(app: FastAPI, run_id: str) -> Lease:
    """As a worker would: whatever else waits is ended first, so that tests do not meet each other."""
    show_worker(database_of(app))
    while True:
        with database_of(app).writing() as session:
            lease = leases.take_next(session, "worker")
        assert lease is not None
        if lease.run.id == run_id:
            return lease
        end(app, lease, State.CANCELLED)


def tell(app: FastAPI, lease: Lease, progress: Progress) -> None:
    with database_of(app).writing() as session:
        leases.beat(session, lease, progress)


def end(app: FastAPI, lease: Lease, state: State, failure: Failure | None = None) -> None:
    """Without a result."""
    with database_of(app).writing() as session:
        assert leases.end(session, lease, Outcome(state, failure=failure or Failure("It ended.", exit="", phase="running")))


def finish(app: FastAPI, lease: Lease, **changes: Any) -> None:
    """With a result: exactly what was predicted, unless `changes` to the report of the first experiment say otherwise."""
    report = as_predicted(lease.run.spec)
    if changes:
        first, *others = report.experiments
        report = replace(report, experiments=(replace(first, **changes), *others))
    outcome = Outcome(State.DONE, report=to_json(report), versions=VERSIONS, repeatable=True,
                      seconds={"launching": 0.4, "warming_up": 0.2, "measuring": 0.6})
    with database_of(app).writing() as session:
        assert leases.end(session, lease, outcome)


def as_predicted(spec: RunSpec) -> RunReport:
    """A report whose sockets carried what gloo is predicted to send, and on the wire ten headers beside it."""
    report = made_up.report(spec)
    return replace(report, experiments=tuple(_as_predicted(spec.P, one) for one in report.experiments))


def _as_predicted(size: int, one: ExperimentReport) -> ExperimentReport:
    experiment = one.experiment
    exact = predict(experiment.strategy, P=size, L=experiment.L, H=experiment.H, T=experiment.T, m=experiment.m,
                    options=experiment.options).exact
    by_rank = exact.by_rank or (exact.total / size,) * size
    sent = [int(count * 4) for count in by_rank]
    return replace(one, payload_matrix=ring(sent), wire_matrix=ring([count + 10 * HEADER_BYTES["gloo"] for count in sent]))


def ring(sent: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Rank r sends all of it to rank r + 1."""
    size = len(sent)
    return tuple(tuple(count * (to == (rank + 1) % size) for to in range(size)) for rank, count in enumerate(sent))
