"""Query strings of lessons: many figures and questions share one, so each changes its own keys only."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.datastructures import QueryParams


def without(query: Mapping[str, str], key: str) -> str:
    """The query, encoded again, without one key. A key that was given twice stays twice."""
    pairs = query.multi_items() if isinstance(query, QueryParams) else list(query.items())
    return urlencode([(name, value) for name, value in pairs if name != key])
