"""Every interactive figure by its name in code and URL."""

from __future__ import annotations

from app.figures import volume, what_moves
from app.figures.engine import Figure

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        Figure("volume", "What one training step sends", volume.FIELDS, volume.compute),
        Figure("what_moves", "What moves in one training step", what_moves.FIELDS, what_moves.compute, live=False),
    )
}
