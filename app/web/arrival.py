"""A request has to arrive whole in a limited time: uvicorn's protocol with the limit that it lacks."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

# From the first byte of a request, or from the opening of its connection, to the last byte of its body. The longest form has a
# few hundred bytes, and a megabyte, the most that is taken, arrives in this time at 270 kbit/s.
ARRIVAL_SECONDS = 30.0


class PunctualProtocol(H11Protocol):
    """Drops a connection on which a request takes too long to arrive. uvicorn would hold it for ever, and a few hundred such
    connections would use up all that one process may open. Between two requests its keep-alive time ends a connection.

    How many connections there are is not limited: uvicorn would refuse everybody who comes after the last of them, and
    whoever holds many could shut all others out.
    """

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_arrival()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_arrival()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def _watch_arrival(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_watching()
        elif self._due is None:
            self._due = self.loop.call_later(ARRIVAL_SECONDS, self.transport.abort)

    def _stop_watching(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
