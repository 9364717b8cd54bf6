"""Reads the packaged table of published figures for the tests of this room."""

from __future__ import annotations

import json
from typing import Any

from app.theory.published import PUBLISHED_FILE, TOPICS


def covered_rows() -> list[dict[str, Any]]:
    """Rows of the topics that the formulas answer for."""
    rows: list[dict[str, Any]] = json.loads(PUBLISHED_FILE.read_text(encoding="utf-8"))
    return [row for row in rows if row["topic"] in TOPICS]
