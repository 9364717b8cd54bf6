"""The rendezvous of a launch on one box: nobody to wait for, so a store on 127.0.0.1 and the ranks may start.

Registered with torch elastic under the name "one_box". Its own c10d rendezvous would do as well, but it sleeps up to
0.3 s at random so that many nodes do not arrive at once, starts a heartbeat thread before the ranks are forked, and
asks for the host's name, which takes minutes where that name does not resolve.
"""

from __future__ import annotations

import socket
from datetime import timedelta

from torch.distributed import Store, TCPStore
from torch.distributed.elastic.rendezvous import (
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    rendezvous_handler_registry,
)

NAME = "one_box"
ADDRESS = "127.0.0.1"


class OneBoxRendezvous(RendezvousHandler):
    """One agent, always ready. The agent's store is also the one the ranks join by."""

    def __init__(self, run_id: str, timeout_seconds: int) -> None:
        self._run_id = run_id
        self._timeout = timedelta(seconds=timeout_seconds)
        self._closed = False
        self._store: Store | None = None

    def get_backend(self) -> str:
        return NAME

    @property
    def use_agent_store(self) -> bool:
        return True

    def next_rendezvous(self) -> RendezvousInfo:
        # Left to itself the store listens on every interface, for whoever comes; it asks nobody who they are.
        listener = socket.create_server((ADDRESS, 0), backlog=socket.SOMAXCONN)
        port = listener.getsockname()[1]
        store = TCPStore(ADDRESS, port, is_master=True, wait_for_workers=False, timeout=self._timeout,
                         master_listen_fd=listener.detach())
        self._store = store
        return RendezvousInfo(store, 0, 1, RendezvousStoreInfo(ADDRESS, store.port))

    def is_closed(self) -> bool:
        return self._closed

    def set_closed(self) -> None:
        self._closed = True

    def num_nodes_waiting(self) -> int:
        return 0

    def get_run_id(self) -> str:
        return self._run_id

    def shutdown(self) -> bool:
        self._closed = True
        return True


def register() -> None:
    """Make LaunchConfig(rdzv_backend=NAME) work in this process."""
    rendezvous_handler_registry.register(NAME, _create)


def _create(parameters: RendezvousParameters) -> RendezvousHandler:
    timeout_seconds = parameters.get_as_int("timeout")
    if timeout_seconds is None:
        raise ValueError("timeout = None: a launch on one box needs rdzv_configs={'timeout': seconds}")
    return OneBoxRendezvous(parameters.run_id, timeout_seconds)
