"""Runs the web process: `worldsize web`, and the web half of `worldsize serve`."""

from __future__ import annotations

import socket

import uvicorn

from app.errors import AppError
from app.settings import Settings
from app.web.arrival import PunctualProtocol
from app.web.logs import configure_logs

FINISH_SECONDS = 10  # what is being answered when the process is told to stop may take this long


def run_web(settings: Settings) -> None:
    """Serves until SIGTERM or SIGINT, then finishes what it has begun. Raises AppError where the site cannot start."""
    from app.main import create_app  # main stands above this room: it is reached when it is called, not when it is loaded

    configure_logs()
    app = create_app(settings)
    _refuse_unless_free(settings.host, settings.port)
    uvicorn.run(app, host=settings.host, port=settings.port, log_config=None, access_log=False, server_header=False,
                http=PunctualProtocol, proxy_headers=False, timeout_graceful_shutdown=FINISH_SECONDS)


def _refuse_unless_free(host: str, port: int) -> None:
    """In words and before anything is announced: uvicorn would log a number and end with a status of its own."""
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in places:
            with socket.socket(family, kind, protocol) as trial:
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind(address)
    except OSError as error:
        raise AppError(f"Nothing can listen on {host}, port {port}: {error.strerror}. Choose another with --host and "
                       "--port, or WORLDSIZE_HOST and WORLDSIZE_PORT.") from error
