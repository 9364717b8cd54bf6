"""GET /metrics for Prometheus, where the settings ask for it: runs from the database, requests of this process."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import NotFound
from app.runs import store
from app.runs.store import Figures, State
from app.web.deps import SiteDep
from app.web.logs import route_of

router = APIRouter()
REGISTRY = CollectorRegistry()
REQUESTS = Counter("worldsize_requests", "Requests answered by this process, by route.", ("method", "route", "status"),
                   registry=REGISTRY)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class MetricsOff(NotFound):
    """The settings do not ask for them."""

    kind = "page"


class CountRequests:
    """Counts every answer under the route as written in the code, so that no address of a visitor becomes a label."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status = 500
        # Whatever a client makes up as a method must not become a label of its own; HeadAsGet changes it further in.
        method = scope["method"] if scope["method"] in METHODS else "other"

        async def send_noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_noting)
        finally:
            REQUESTS.labels(method, route_of(scope), str(status)).inc()


@router.get("/metrics", include_in_schema=False)
def metrics(site: SiteDep) -> Response:
    """404 unless the settings ask for them: they tell how busy the server is."""
    if not site.settings.metrics:
        raise MetricsOff("metrics")
    with site.database.reading() as session:
        runs = RunFigures(store.figures(session))
    registry = CollectorRegistry()
    registry.register(runs)
    body = generate_latest(registry) + generate_latest(REGISTRY)
    return Response(body, headers={"Cache-Control": "no-store"}, media_type=CONTENT_TYPE_PLAIN_0_0_4)


class RunFigures(Collector):
    """All runs there ever were, in the words of Prometheus."""

    def __init__(self, figures: Figures) -> None:
        self.figures = figures

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("worldsize_queue_depth", "Runs that wait for their turn.", self.figures.queue_depth)
        running = self.figures.by_state[State.RUNNING]
        yield GaugeMetricFamily("worldsize_runs_running", "Runs that are being carried out.", running)
        ended = CounterMetricFamily("worldsize_runs_ended", "Runs that have ended, by outcome.", labels=("outcome",))
        for state, count in self.figures.by_state.items():
            if state.is_final:
                ended.add_metric((state.value,), count)
        yield ended
        seconds = SummaryMetricFamily("worldsize_run_seconds", "How long runs took, by phase.", labels=("phase",))
        for phase, total in self.figures.seconds.items():
            seconds.add_metric((phase,), self.figures.counts[phase], total)
        yield seconds
        lost = self.figures.losses
        yield CounterMetricFamily("worldsize_workers_lost", "How often a worker was lost in the middle of a run.", lost)
