"""Checks that need the whole course: slugs, prerequisites, links from lesson to lesson."""

from __future__ import annotations

from collections.abc import Sequence

from app.course.links import link_faults
from app.errors import Fault

__all__ = ["check_prerequisites", "check_slugs", "link_faults"]


def check_slugs(listed: Sequence[tuple[str, str, int, str]], faults: list[Fault]) -> None:
    """No two lessons may share a slug, be it across content directories: it is an address, and a key of stored answers."""
    first: dict[str, tuple[str, int]] = {}
    for slug, file, line, key in listed:
        if slug in first:
            place = f"{first[slug][0]}:{first[slug][1]}"
            faults.append(Fault(file, line, key, f"the slug {slug} is taken by {place}.", "Choose another slug."))
        first.setdefault(slug, (file, line))


def check_prerequisites(listed: Sequence[tuple[str, tuple[str, ...], str, int, str]], faults: list[Fault]) -> None:
    """A prerequisite is a lesson that stands further up; so there can be no circle."""
    every = {slug for slug, *_ in listed}
    above: list[str] = []
    for slug, prerequisites, file, line, key in listed:
        for wanted in prerequisites:
            if wanted not in every:
                faults.append(Fault(file, line, key, f"{slug} builds on {wanted}, which is no lesson.", f"Lessons are {', '.join(sorted(every))}."))
            elif wanted not in above:
                faults.append(Fault(file, line, key, f"{slug} builds on {wanted}, which does not stand before it.", "Change the order, or drop it."))
        above.append(slug)
