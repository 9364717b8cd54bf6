"""`single` that tells by its error whether Megatron-Core was there when its rank began; the launch host adds it."""

from __future__ import annotations

import sys
from typing import NoReturn

from kernels.strategies.base import Context


def build(context: Context) -> NoReturn:
    raise ValueError(f"megatron.core is {'here' if 'megatron.core' in sys.modules else 'not here'}")


STRATEGIES = {"single": build}
SPECS = ()
