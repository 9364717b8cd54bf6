"""lesson.md: seven sections in their order, each composed into finished HTML and slots."""

from __future__ import annotations

from markdown_it.token import Token

from app.course.compose import Composer
from app.course.draft import Draft
from app.course.model import SECTIONS, Section


def section_slug(title: str) -> str:
    return title.lower().replace(" ", "-")


def read_sections(draft: Draft, file: str, text: str) -> tuple[Section, ...]:
    """All sections that could be composed. Each missing, misplaced, repeated or unknown one is a fault."""
    composer = Composer(draft, file, "")
    tokens = composer.tokens(text, 1)
    found = _cut(composer, tokens)
    _check_order(composer, [(title, line) for title, line, _ in found])
    for title in SECTIONS:
        draft.anchors.add(section_slug(title))
    sections: list[Section] = []
    for title, line, body in found:
        composer.key = title
        if not body:
            composer.fault(f"the section {title} is empty.", "Write it.", line)
        sections.append(Section(section_slug(title), title, composer.filled(composer.render(body))))
    return tuple(sections)


def _cut(composer: Composer, tokens: list[Token]) -> list[tuple[str, int, list[Token]]]:
    """Title, line and tokens of each part that a ## opens."""
    found: list[tuple[str, int, list[Token]]] = []
    for position, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag == "h2" and token.level == 0:
            found.append((tokens[position + 1].content.strip(), token.meta["line"], []))
        elif not found:
            if position == 0:
                composer.fault("text stands before the first section.", "Begin the file with ## Hook.", token.meta["line"])
        elif not _within_h2(tokens, position):
            found[-1][2].append(token)
    return found


def _within_h2(tokens: list[Token], position: int) -> bool:
    """The heading's own text and its closing token."""
    token = tokens[position]
    if token.type == "heading_close":
        return token.tag == "h2"
    before = tokens[position - 1]
    return before.type == "heading_open" and before.tag == "h2" and before.level == 0


def _check_order(composer: Composer, found: list[tuple[str, int]]) -> None:
    titles = [title for title, _ in found]
    order = ", ".join(SECTIONS)
    for title in SECTIONS:
        if title not in titles:
            composer.key = title
            composer.fault(f"the section {title} is missing.", f"Add ## {title}; the order is {order}.",
                           found[-1][1] if found else 1)
    known = [(title, line) for title, line in found if title in SECTIONS]
    for index, (title, line) in enumerate(found):
        composer.key = title
        if title not in SECTIONS:
            composer.fault(f"there is no section {title!r}.", f"The sections are {order}; use ### below them.", line)
        elif title in titles[:index]:
            composer.fault(f"the section {title} stands here a second time.", "Join the two.", line)
    for (title, line), (previous, _) in zip(known[1:], known, strict=False):
        if SECTIONS.index(title) < SECTIONS.index(previous):
            composer.key = title
            composer.fault(f"the section {title} stands after {previous}.", f"The order is {order}.", line)
