"""A platform without TCP_INFO: the real strategies, with the counters taken away before any rank looks for them."""

import socket

from kernels.strategies import STRATEGIES as REAL

del socket.TCP_INFO

STRATEGIES = dict(REAL)
SPECS = ()
