"""Lesson text to HTML with holes: Markdown's tokens get their meaning here, and what is wrong with them becomes a fault."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.course import links
from app.course.code import highlighted
from app.course.cards import mark
from app.course.directives import directive_html
from app.course.draft import Draft
from app.course.expression import ExpressionFault, parse_expression
from app.course.markup import parser
from app.course.math import MathFault
from app.course.model import AXES, Slot
from app.course.numerals import typed_numerals, typed_numerals_in_math
from app.course.template import MathPiece, Shown, Template
from app.theory import FORMULAS

_COMPUTED = re.compile(r"\{=([^{}\n]*)=\}|\{!([^{}\n]*)\}")
_HOLE = re.compile("\x00([0-9]+)\x00")
_LITERAL_REMEDY = "Compute it with {= formula =}, name a given as {P}, or write {!%s} if it is meant as typed."


@dataclass(frozen=True)
class Hole:
    """A part that is filled later, and the line it was written on."""

    part: Shown | MathPiece | Slot
    line: int


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    markdown = parser()
    for name, rule in _RULES.items():
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
            _set_lines(token, line)
        _shape_tables(tokens)
        return tokens

    def render(self, tokens: Sequence[Token]) -> str:
        """HTML with holes."""
        return str(_markdown().renderer.render(tokens, _markdown().options, {"composer": self}))

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
                self.fault(f"a {part.kind} cannot stand here.", "Place it in lesson.md.", piece.line if isinstance(piece, Hole) else None)
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
            return template.html(self.draft.given)
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
            self.fault(f"the number {numeral} in a formula is typed by hand.", _LITERAL_REMEDY % numeral)
        return latex


def _set_lines(token: Token, first_line: int) -> None:
    """Every token's line, counted from the top of the file; within a paragraph each break is a line."""
    line = first_line + (token.map[0] if token.map else 0)
    token.meta["line"] = line
    for child in token.children or []:
        child.meta["line"] = line
        line += child.type in ("softbreak", "hardbreak")


def _shape_tables(tokens: list[Token]) -> None:
    """Tables as the style sheet reads them: row headings, the column's name on each cell, alignment as a class."""
    names: list[str] = []
    column = 0
    for position, token in enumerate(tokens):
        if token.type == "thead_open":
            names = []
        elif token.type == "tr_open":
            column = 0
        elif token.type in ("th_open", "td_open"):
            right = "right" in str(token.attrs.pop("style", ""))
            if right:
                token.attrs["class"] = "r"
            _shape_cell(token, tokens[position + 2], column, names, tokens[position + 1].content)
            column += 1


def _shape_cell(token: Token, closing: Token, column: int, names: list[str], content: str) -> None:
    if token.type == "th_open":
        token.attrs["scope"] = "col"
        names.append(re.sub(r"\{[^{}]*\}|[$*_`]", "", content).strip())
    elif column == 0:
        token.tag = closing.tag = "th"
        token.attrs["scope"] = "row"
    elif column < len(names):
        token.attrs["data-l"] = names[column]


Env = dict[str, Any]


def _at(tokens: Sequence[Token], index: int, env: Env) -> tuple[Token, Composer]:
    composer: Composer = env["composer"]
    composer.line = tokens[index].meta.get("line", composer.line)
    return tokens[index], composer


def _text(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    token, composer = _at(tokens, index, env)
    for numeral in typed_numerals(token.content):
        composer.fault(f"the number {numeral} is typed by hand.", _LITERAL_REMEDY % numeral)
    return escape(token.content, quote=False)


def _computed(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    token, composer = _at(tokens, index, env)
    shown = composer.shown(token.content)
    return "" if shown is None else composer.hole(shown)


def _braces(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    """{!as typed}, {P}, {source id}, {mark axis}, {axis: text}."""
    token, composer = _at(tokens, index, env)
    written = token.content
    if written.startswith("!"):
        return escape(written[1:].strip())
    word, _, rest = written.partition(" ")
    if word == "source" and rest:
        return links.citation(composer, rest.strip())
    if word == "mark" and rest.strip() in AXES:
        return mark(rest.strip())
    if word.endswith(":") and word[:-1] in AXES and rest:
        return f'<b class="ax ax-{word[:-1]}">{escape(rest.strip())}</b>'
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", written):
        shown = composer.shown(written)
        return "" if shown is None else composer.hole(shown)
    composer.fault(f"{token.markup} means nothing here.",
                   "Braces hold a given, a source, an axis or a literal: {P}, {source id}, {data: word}, {!8}; \\{ is a plain brace.")
    return ""


def _math_inline(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    token, composer = _at(tokens, index, env)
    return composer.math(token.content, display=False)


def _math_block(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    token, composer = _at(tokens, index, env)
    return composer.math(token.content.strip(), display=True) + "\n"


def _link_open(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    token, composer = _at(tokens, index, env)
    return links.opening(composer, token)


def _link_close(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    return links.closing(env["composer"])


def _strong(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    """Notes open with a bold lead, which the style sheet knows as <b>."""
    tag = "b" if env["composer"].in_note else "strong"
    return f"<{tag}>" if tokens[index].nesting == 1 else f"</{tag}>"


def _fence(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    token, composer = _at(tokens, index, env)
    language = token.info.strip() or "text"
    code = highlighted(token.content, language)
    if code is None:
        composer.fault(f"code in {language!r} cannot be coloured.", "Name a language such as python, json or text.")
    return f'<pre class="highlight" tabindex="0"><code>{code}</code></pre>\n'


def _heading(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    token, composer = _at(tokens, index, env)
    if token.nesting == 1 and token.tag != "h3":
        composer.fault(f"a heading of level {token.tag[1]} stands within the text.", "Use ### below the seven sections.")
    return "<h3>" if token.nesting == 1 else "</h3>\n"


def _table_open(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    return '<div class="wide scroll"><table class="tab stack">\n'


def _table_close(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    return "</table></div>\n"


def _directive(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    token, composer = _at(tokens, index, env)
    html = directive_html(composer, token)
    composer.line = token.meta["line"]
    return html


_RULES = {
    "text": _text, "computed": _computed, "braces": _braces, "math_inline": _math_inline, "math_block": _math_block,
    "link_open": _link_open, "link_close": _link_close, "strong_open": _strong, "strong_close": _strong, "fence": _fence,
    "heading_open": _heading, "heading_close": _heading, "table_open": _table_open, "table_close": _table_close,
    "directive": _directive,
}
