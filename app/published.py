"""Reads the packaged table of published figures and has every covered row answered by our formulas. Theory does no I/O."""

from __future__ import annotations

import json
from typing import Any

from app.theory.published import PUBLISHED_FILE, TOPICS, Check, check


def check_all() -> dict[str, list[Check]]:
    """Topic -> its checks, in the order of the table; topics whose formulas are still to come are left out."""
    rows: list[dict[str, Any]] = json.loads(PUBLISHED_FILE.read_text(encoding="utf-8"))
    return {topic: [check(row) for row in rows if row["topic"] == topic] for topic in TOPICS}
