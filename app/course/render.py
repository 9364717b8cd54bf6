"""A section as HTML: its finished parts, and what the page supplies for the slots between them."""

from __future__ import annotations

from app.course.model import Embed, Section, Slot


def render_section(section: Section, embed: Embed) -> str:
    """What follows the section's heading. Slots stand in a <div class="slot"> whose id the lesson's links lead to."""
    return "".join(part if isinstance(part, str) else _filled(part, embed) for part in section.parts)


def _filled(slot: Slot, embed: Embed) -> str:
    match slot.kind:
        case "figure":
            return embed.figure(slot.name, slot.params)
        case "question":
            return embed.question(slot.name)
        case "experiment":
            return embed.experiment(slot.name)
        case "prediction":
            return embed.prediction(slot.name)
        case "recall":
            return embed.recall(slot.name)
