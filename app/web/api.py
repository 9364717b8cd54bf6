"""GET /api/predict/{strategy}: a prediction as JSON, in the schema of `worldsize predict --json`."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from app.errors import BadInput
from app.runs.results import predicted, result_json
from app.theory.predictions import BACKENDS
from kernels import spec

router = APIRouter(prefix="/api")
MOST_GPUS = 4096  # a prediction needs no machine, so it goes further than a run
KEEP_FIVE_MINUTES = "public, max-age=300"  # the same question has the same answer until the next release
NUMBERS = ("P", "L", "H", "T", "m")


def _number(limit: spec.Range, maximum: int | None = None) -> Any:
    return Query(ge=limit.minimum, le=maximum or limit.maximum, description=limit.meaning)


@router.get("/predict/{strategy}", responses={422: {"description": "a field that cannot be used, with what is allowed"}})
def predict_strategy(
    request: Request,
    response: Response,
    strategy: Annotated[str, Path(description=f"one of {', '.join(spec.STRATEGY_SPECS)}")],
    P: Annotated[int, _number(spec.P, MOST_GPUS)] = spec.P.default,
    L: Annotated[int, _number(spec.L)] = spec.L.default,
    H: Annotated[int, _number(spec.H)] = spec.H.default,
    T: Annotated[int, _number(spec.T)] = spec.T.default,
    m: Annotated[int, _number(spec.M)] = spec.M.default,
    backend: Annotated[str, Query(description=f"one of {', '.join(BACKENDS)}")] = BACKENDS[0],
) -> dict[str, Any]:
    """What one training step sends. Further keys of the query are options of the strategy."""
    options = _options(request, strategy)
    response.headers["Cache-Control"] = KEEP_FIVE_MINUTES
    try:
        return result_json(predicted(P, spec.Experiment(strategy, L, H, T, m, options), backend))
    except ValueError as refused:
        field, _, why = str(refused).partition(" = ")
        raise BadInput({field: why}) from refused


def _options(request: Request, strategy: str) -> dict[str, spec.OptionValue]:
    """Keys that are neither numbers nor the backend; an option that counts is read as a whole number."""
    named = {key: value for key, value in request.query_params.items() if key not in (*NUMBERS, "backend")}
    declared = spec.STRATEGY_SPECS[strategy].options if strategy in spec.STRATEGY_SPECS else ()
    counts = {option.name: option for option in declared if isinstance(option, spec.Range)}
    return {key: _whole(counts[key], value) if key in counts else value for key, value in named.items()}


def _whole(limit: spec.Range, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and limit.minimum <= int(text) <= limit.maximum):
        raise BadInput({limit.name: f"must be a whole number from {limit.minimum} to {limit.maximum}"})
    return int(text)
