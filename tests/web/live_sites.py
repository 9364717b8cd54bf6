"""Sites where runs are carried out for real, by a worker of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.runs import worker_process
from tests.runs.traces import HOLD
from tests.web.sites import make_app, serving


@dataclass(frozen=True)
class LiveSite:
    """The launch host of its worker is warm after the first run."""

    url: str
    folder: Path

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside the block no run gets beyond its first step, so that it is seen at work on any machine."""
        hold = self.folder / HOLD
        hold.touch()
        try:
            yield
        finally:
            hold.unlink()


@contextmanager
def live_site(folder: Path, lessons: Sequence[str] = ()) -> Iterator[LiveSite]:
    app = make_app(folder, lessons=lessons, run_quota=1000, run_seconds=600)
    with serving(app) as url, worker_process.running(folder, app.state.site.settings.storage_url, real=True):
        yield LiveSite(url, folder)
    app.state.site.database.close()
