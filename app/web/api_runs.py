"""POST /api/runs asks for a real run, GET /api/runs/{id} reads it: JSON, in the schema of `worldsize measure --json`."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Body
from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from app.learners.store import get_or_create_learner
from app.runs import queue, store, timing
from app.runs.store import Run
from app.web.deps import AllowanceDep, SiteDep, VisitorDep, remember
from app.web.logs import log
from kernels import spec

router = APIRouter(prefix="/api")
PRIVATE = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}
REFUSALS: dict[int | str, dict[str, Any]] = {
    422: {"description": "a field that cannot be used, with what is allowed"},
    429: {"description": "too many runs for now; Retry-After says when to come again"},
}
LONGEST_WORD = 40
HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def _option(value: Any) -> bool | int | str:
    """One sentence for all that an option cannot be: a union would tell of each of its members."""
    if not isinstance(value, bool | int | str) or (isinstance(value, str) and not _is_word(value)):
        raise PydanticCustomError("option", f"must be a word of at most {LONGEST_WORD} letters, a whole number, true or false")
    return value


def _is_word(text: str) -> bool:
    """JSON can name half of a character, which no answer could repeat."""
    return len(text) <= LONGEST_WORD and not HALF_CHARACTER.search(text)


OptionName = Annotated[str, Field(max_length=LONGEST_WORD)]
Option = Annotated[bool | int | str, BeforeValidator(_option)]


class ExperimentBody(BaseModel):
    """One strategy at its values. What each takes is what `worldsize measure` takes."""

    model_config = ConfigDict(extra="forbid")
    strategy: str = Field(max_length=LONGEST_WORD)
    L: int = spec.L.default
    H: int = spec.H.default
    T: int = spec.T.default
    m: int = spec.M.default
    options: dict[OptionName, Option] = Field(default_factory=dict, max_length=12)

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


def _shape(body: Any) -> str:
    """Which of the two a body means to be, so that its faults are told of that one alone."""
    return "several" if isinstance(body, dict) and "experiments" in body else "single"


AnyRunBody = Annotated[Annotated[RunBody, Tag("several")] | Annotated[SingleRunBody, Tag("single")], Discriminator(_shape)]


@router.post("/runs", status_code=202, responses=REFUSALS)
def ask_for_run(request: Request, site: SiteDep, who: VisitorDep, allowance: AllowanceDep,
                body: Annotated[AnyRunBody, Body()]) -> Response:
    """202 with the run's id: a new one, one under way that was joined, or an earlier one of the same, unless `fresh` is set."""
    asked_for = body.experiments if isinstance(body, RunBody) else [body]
    wanted = spec.RunSpec(body.P, tuple(one.experiment() for one in asked_for))
    with site.database.writing() as session:
        get_or_create_learner(session, who.id, allowance)
        asked = queue.ask(session, who.id, wanted, settings=site.settings, fresh=body.fresh)
    log.info("run asked for", run=asked.run_id, shared=asked.shared)
    return remember(request, JSONResponse({"id": asked.run_id, "shared": asked.shared}, 202, headers=PRIVATE), who)


@router.get("/runs/{run_id}")
def read_run(site: SiteDep, run_id: str) -> Response:
    """The run as it stands. `reports` is empty until it is done; `timings` are seconds by phase, those that are known; `fit` is
    what a run brought that took times and counted no bytes."""
    with site.database.reading() as session:
        run = store.get(session, run_id)
        position = store.position(session, run)
    return JSONResponse(run_json(run, position), headers=PRIVATE)


def fit_of(run: Run) -> dict[str, Any] | None:
    """Times by size and the line through them, of a timing run that is done; null for all others."""
    return timing.fit_json(run.report) if run.report is not None and run.spec.purpose == timing.PURPOSE else None


def run_json(run: Run, position: int) -> dict[str, Any]:
    """All there is about a run but who asked for it."""
    failure = run.failure
    return {
        "id": run.id,
        "state": run.state.value,
        "position": position,
        "spec": spec.to_json(run.spec),
        "reports": [dict(report) for report in run.results],
        "fit": fit_of(run),
        "timings": dict(run.seconds),
        "failure": None if failure is None else asdict(failure),
        "asked_at": run.asked_at.isoformat(),
        "started_at": None if run.started_at is None else run.started_at.isoformat(),
        "ended_at": None if run.ended_at is None else run.ended_at.isoformat(),
    }
