"""POST /api/runs asks for a real run, GET /api/runs/{id} reads it: JSON, in the schema of `worldsize measure --json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Body
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.runs import queue
from app.web.deps import SiteDep, VisitorDep, remember
from app.web.logs import log
from kernels import spec

router = APIRouter(prefix="/api")
PRIVATE = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}
REFUSALS: dict[int | str, dict[str, Any]] = {
    422: {"description": "a field that cannot be used, with what is allowed"},
    429: {"description": "too many runs for now; Retry-After says when to come again"},
}
Option = Annotated[bool, Field(strict=True)] | Annotated[int, Field(strict=True)] | Annotated[str, Field(max_length=40)]


class ExperimentBody(BaseModel):
    """One strategy at its values. What each takes is what `worldsize measure` takes."""

    model_config = ConfigDict(extra="forbid")
    strategy: str = Field(max_length=40)
    L: int = spec.L.default
    H: int = spec.H.default
    T: int = spec.T.default
    m: int = spec.M.default
    options: dict[str, Option] = Field(default_factory=dict, max_length=12)

    def experiment(self) -> spec.Experiment:
        return spec.Experiment(self.strategy, self.L, self.H, self.T, self.m, self.options)


class RunBody(BaseModel):
    """Several experiments in one launch."""

    model_config = ConfigDict(extra="forbid")
    P: int = spec.P.default
    experiments: list[ExperimentBody] = Field(min_length=1, max_length=64)
    fresh: bool = False


class SingleRunBody(ExperimentBody):
    """One experiment, without a list around it."""

    P: int = spec.P.default
    fresh: bool = False


@router.post("/runs", status_code=202, responses=REFUSALS)
def ask_for_run(request: Request, site: SiteDep, who: VisitorDep, body: Annotated[RunBody | SingleRunBody, Body()]) -> Response:
    """202 with the run's id: a new one, one under way that was joined, or an earlier one of the same, unless `fresh` is set."""
    asked_for = body.experiments if isinstance(body, RunBody) else [body]
    wanted = spec.RunSpec(body.P, tuple(one.experiment() for one in asked_for))
    with site.database.writing() as session:
        asked = queue.ask(session, who.id, wanted, settings=site.settings, fresh=body.fresh)
    log.info("run asked for", run=asked.run_id, shared=asked.shared)
    return remember(request, JSONResponse({"id": asked.run_id, "shared": asked.shared}, 202, headers=PRIVATE), who)


@router.get("/runs/{run_id}")
def read_run(site: SiteDep, run_id: str) -> Response:
    """The run as it stands. `reports` is empty until it is done; `timings` are seconds by phase, those that are known."""
    with site.database.reading() as session:
        run = queue.get(session, run_id)
        position = queue.position(session, run)
    return JSONResponse(run_json(run, position), headers=PRIVATE)


def run_json(run: queue.Run, position: int) -> dict[str, Any]:
    """All there is about a run but who asked for it."""
    failure = run.failure
    return {
        "id": run.id,
        "state": run.state.value,
        "position": position,
        "spec": spec.to_json(run.spec),
        "reports": [dict(report) for report in run.results],
        "timings": dict(run.seconds),
        "failure": None if failure is None else asdict(failure),
        "asked_at": run.asked_at.isoformat(),
        "started_at": None if run.started_at is None else run.started_at.isoformat(),
        "ended_at": None if run.ended_at is None else run.ended_at.isoformat(),
    }
