"""Links and citations: where each may lead, and the note taken of it for the check once all lessons are read."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from markdown_it.token import Token

from app.course.draft import Draft, Link
from app.errors import Fault

if TYPE_CHECKING:
    from app.course.compose import Composer

_PAGES = ("/", "/ledger", "/me")
_LESSONS = "/lessons/"


def citation(composer: Composer, source_id: str) -> str:
    """A source by its id: its short name, linked to the list of sources on the page."""
    source = composer.draft.sources.get(source_id)
    if source is None:
        known = ", ".join(composer.draft.sources) or "none yet"
        composer.fault(f"there is no source {source_id!r}.", f"Name one of lesson.yaml ({known}) or add it there.")
        return ""
    composer.draft.use("source", source_id)
    _remember(composer, f"#{source.anchor}")
    return f'<a href="#{escape(source.anchor)}">{escape(source.short)}</a>'


def opening(composer: Composer, token: Token) -> str:
    """The tag that opens a link. A lesson that is still coming cannot be opened, so its name stays plain text."""
    href = str(token.attrs.get("href", ""))
    tag = "a"
    if href.startswith("#"):
        composer.draft.used.add(("source", href.removeprefix("#source-")))
        _remember(composer, href)
    elif href.startswith(_LESSONS):
        slug = href.removeprefix(_LESSONS).partition("#")[0]
        if slug in composer.draft.coming:
            tag = "span"
        _remember(composer, href)
    elif not href.startswith(("https://", "http://")) and href not in _PAGES:
        composer.fault(f"the link {href!r} leads nowhere.",
                       f"Link to #a-place on this page, {_LESSONS}SLUG, {', '.join(_PAGES)} or a full https:// address.")
    composer.open_links.append(tag)
    return "<span>" if tag == "span" else f'<a href="{escape(href)}">'


def closing(composer: Composer) -> str:
    return f"</{composer.open_links.pop()}>"


def _remember(composer: Composer, href: str) -> None:
    draft = composer.draft
    draft.links.append(Link(composer.file, composer.line, composer.key, draft.slug, href))


def link_faults(drafts: Mapping[str, Draft]) -> list[Fault]:
    """Every link on this site that leads to no lesson or no place on its page. Lessons that are coming are left out."""
    faults: list[Fault] = []
    for draft in drafts.values():
        for link in draft.links:
            slug, _, anchor = link.href.removeprefix(_LESSONS).partition("#")
            target = slug or link.lesson
            if target in draft.coming:
                continue
            if target not in drafts:
                faults.append(Fault(link.file, link.line, link.key, f"the link {link.href} leads to no lesson.",
                                    f"Lessons are {', '.join(drafts)}."))
            elif anchor and anchor not in drafts[target].anchors:
                known = ", ".join(sorted(drafts[target].anchors))
                faults.append(Fault(link.file, link.line, link.key, f"the link {link.href} leads to no place on that page.",
                                    f"Places there are {known}."))
    return faults
