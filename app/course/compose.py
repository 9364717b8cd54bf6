"""Lesson text to HTML with holes, and the holes filled with computed numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.course.cards import unbroken
from app.course.draft import Draft
from app.course.expression import ExpressionFault, parse_expression
from app.course.markup import parser
from app.course.math import MathFault
from app.course.model import Slot
from app.course.numerals import REMEDY, typed_numerals_in_math
from app.course.rules import RULES, beside_notes, set_lines, shape_tables
from app.course.template import MathPiece, Shown, Template
from app.theory import FORMULAS

_COMPUTED = re.compile(r"\{=([^{}\n]*)=\}|\{!([^{}\n]*)\}")
_HOLE = re.compile("\x00([0-9]+)\x00")
_PUNCTUATED = re.compile("([(]?)\x00([0-9]+)\x00([,.;:!?)]+)|[(]\x00([0-9]+)\x00")


@dataclass(frozen=True)
class Hole:
    """A part that is filled later, and the line it was written on."""

    part: Shown | MathPiece | Slot
    line: int


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    markdown = parser()
    for name, rule in RULES.items():
        markdown.add_render_rule(name, rule)
    return markdown


class Composer:
    """Composes the text of one file. `key` is what a fault names: a section, or a key of lesson.yaml."""

    def __init__(self, draft: Draft, file: str, key: str) -> None:
        self.draft = draft
        self.file = file
        self.key = key
        self.line = 1
        self.in_note = False
        self.open_links: list[str] = []
        self._holes: list[Hole] = []

    def fault(self, message: str, remedy: str, line: int | None = None) -> None:
        self.draft.fault(self.file, self.line if line is None else line, self.key, message, remedy)

    def sibling(self, file: str, key: str) -> Composer:
        """A composer for text of another file of the same lesson."""
        return Composer(self.draft, file, key)

    def hole(self, part: Shown | MathPiece | Slot) -> str:
        """A mark in the HTML for a part to come. Markdown replaces NUL in its input, so no text can forge one."""
        self._holes.append(Hole(part, self.line))
        return f"\x00{len(self._holes) - 1}\x00"

    def tokens(self, text: str, line: int) -> list[Token]:
        """The tokens of a text that begins on `line`; each then knows its own line."""
        tokens = _markdown().parse(text, {})
        for token in tokens:
            set_lines(token, line)
        shape_tables(tokens)
        return beside_notes(tokens)

    def render(self, tokens: Sequence[Token]) -> str:
        """HTML with holes."""
        html = str(_markdown().renderer.render(tokens, _markdown().options, {"composer": self}))
        return _PUNCTUATED.sub(self._unbroken, html)

    def _unbroken(self, found: re.Match[str]) -> str:
        """A formula with its comma or bracket: a browser would begin a line with the comma."""
        part = self._holes[int(found[2] or found[4])].part
        return unbroken(found[0]) if isinstance(part, MathPiece) and not part.display else found[0]

    def blocks(self, text: str, line: int) -> str:
        return self.render(self.tokens(text, line))

    def inline(self, text: str, line: int) -> str:
        """One paragraph without its tags; anything more is a fault."""
        tokens = self.tokens(text.strip(), line)
        if [token.type for token in tokens] != ["paragraph_open", "inline", "paragraph_close"]:
            self.line = line
            self.fault("this must be one paragraph of running text.", "Take out lists, headings, directives and blank lines.")
            return ""
        return self.render(tokens[1:2])

    def cut(self, html: str) -> list[str | Hole]:
        """The HTML in pieces, holes between them."""
        pieces = _HOLE.split(html)
        return [self._holes[int(piece)] if index % 2 else piece for index, piece in enumerate(pieces) if index % 2 or piece]

    def template(self, html: str) -> Template:
        """For text that is filled anew with each set of numbers. It has no room for slots."""
        parts: list[str | Shown | MathPiece] = []
        for piece in self.cut(html):
            part = piece.part if isinstance(piece, Hole) else piece
            if isinstance(part, Slot):
                line = piece.line if isinstance(piece, Hole) else None
                self.fault(f"a {part.kind} cannot stand here.", "Place it in lesson.md.", line)
            else:
                parts.append(part)
        return Template(tuple(parts))

    def filled(self, html: str) -> tuple[str | Slot, ...]:
        """The parts with every number computed from what the lesson gives; only slots stay open."""
        parts: list[str | Slot] = []
        for piece in self.cut(html):
            part = piece.part if isinstance(piece, Hole) else piece
            if isinstance(part, Slot):
                parts.append(part)
                continue
            self.line = piece.line if isinstance(piece, Hole) else self.line
            text = part if isinstance(part, str) else self.fill(Template((part,)))
            if parts and isinstance(parts[-1], str):
                parts[-1] += text
            else:
                parts.append(text)
        return tuple(parts)

    def fill(self, template: Template) -> str:
        """The template at the lesson's own numbers; what it does not allow is a fault."""
        try:
            html = template.html(self.draft.given)
            for shown in template.shown():
                self.draft.print(shown.expression, self.file, self.line)
            return html
        except ExpressionFault as fault:
            self.fault(fault.problem, fault.remedy)
        except MathFault as fault:
            self.fault(f"LaTeX: {fault}", "Correct the formula there.")
        return ""

    def html(self, text: str, line: int, *, inline: bool = True) -> str:
        """Text of lesson.yaml, composed and filled at once."""
        composed = self.inline(text, line) if inline else self.blocks(text, line)
        return self.fill(self.template(composed))

    def shown(self, written: str) -> Shown | None:
        """What stands between {= and =}: an expression, then digits=, unit= or `words`."""
        words = written.split()
        settings = {word.partition("=")[0]: word.partition("=")[2] for word in words if word.startswith(("digits=", "unit="))}
        rest = [word for word in words if word != "words" and not word.startswith(("digits=", "unit="))]
        digits = settings.get("digits", "")
        if digits and not re.fullmatch("[0-9]", digits):
            self.fault(f"digits={digits} is no number of decimals.", "Write digits=0 to digits=9.")
            return None
        try:
            expression = parse_expression(" ".join(rest))
        except ExpressionFault as fault:
            self.fault(fault.problem, fault.remedy)
            return None
        shown = Shown(expression, int(digits) if digits else None, settings.get("unit", "").replace("_", " "), "words" in words)
        self._check_unit(shown)
        return shown

    def _check_unit(self, shown: Shown) -> None:
        formula = FORMULAS.get(shown.expression.formula or "")
        if shown.unit and formula is not None and shown.unit != formula.unit:
            self.fault(f"{formula.name} is counted in {formula.unit or 'no unit'}, not in {shown.unit}.",
                       f"Write unit={formula.unit.replace(' ', '_')}." if formula.unit else "Leave out unit=.")

    def math(self, latex: str, display: bool) -> str:
        """LaTeX with computed numbers in it. Other numbers than 0, 1 and 2 are typed by hand, and a fault."""
        pieces: list[str | Shown] = []
        position = 0
        for match in _COMPUTED.finditer(latex):
            pieces.append(self._typed(latex[position : match.start()]))
            if match[1] is None:
                pieces.append(match[2])
            elif (shown := self.shown(match[1])) is not None:
                pieces.append(shown)
            position = match.end()
        pieces.append(self._typed(latex[position:]))
        return self.hole(MathPiece(tuple(piece for piece in pieces if piece), display))

    def _typed(self, latex: str) -> str:
        for numeral in typed_numerals_in_math(latex):
            self.fault(f"the number {numeral} in a formula is typed by hand.", REMEDY % numeral)
        return latex
