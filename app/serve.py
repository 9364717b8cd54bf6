"""Runs the web process: `worldsize web`, and the web half of `worldsize serve`."""

from __future__ import annotations

import uvicorn

from app.settings import Settings
from app.web.logs import configure_logs

FINISH_SECONDS = 10  # what is being answered when the process is told to stop may take this long


def run_web(settings: Settings) -> None:
    """Serves until SIGTERM or SIGINT, then finishes what it has begun. Raises AppError where the site cannot start."""
    from app.main import create_app  # main stands above this room: it is reached when it is called, not when it is loaded

    configure_logs()
    app = create_app(settings)
    uvicorn.run(app, host=settings.host, port=settings.port, log_config=None, access_log=False, server_header=False,
                proxy_headers=False, timeout_graceful_shutdown=FINISH_SECONDS)
