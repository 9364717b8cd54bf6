"""What each Markdown token becomes: our HTML, and a fault where a token is not what a lesson may hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from markdown_it.token import Token

from app.course import links
from app.course.cards import mark
from app.course.code import block_html, highlighted
from app.course.directives import directive_html
from app.course.model import AXES
from app.course.numerals import REMEDY, typed_numerals

if TYPE_CHECKING:
    from app.course.compose import Composer

_AS_TYPED = re.compile(r"</?[A-Za-z][^<>]*>|\]\([^()\s]*\)")  # HTML, and links that Markdown refuses, such as javascript:


def set_lines(token: Token, first_line: int) -> None:
    """Every token's line, counted from the top of the file; within a paragraph each break is a line."""
    line = first_line + (token.map[0] if token.map else 0)
    token.meta["line"] = line
    for child in token.children or []:
        child.meta["line"] = line
        line += child.type in ("softbreak", "hardbreak")


def shape_tables(tokens: list[Token]) -> None:
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


def beside_notes(tokens: Sequence[Token]) -> list[Token]:
    """A note and the paragraph after it in one box: beside each other, or the paragraph first where there is no margin."""
    boxed: list[Token] = []
    closings: set[int] = set()
    for position, token in enumerate(tokens):
        following = tokens[position + 1].type if position + 1 < len(tokens) else ""
        if token.type == "directive" and token.info == "note" and following == "paragraph_open":
            boxed.append(Token("noted_open", "div", 1, attrs={"class": "noted"}, block=True))
            closings.add(position + 3)  # opening tag, text, closing tag
        boxed.append(token)
        if position in closings:
            boxed.append(Token("noted_close", "div", -1, block=True))
    return boxed


Env = dict[str, Any]


def _at(tokens: Sequence[Token], index: int, env: Env) -> tuple[Token, Composer]:
    composer: Composer = env["composer"]
    composer.line = tokens[index].meta.get("line", composer.line)
    return tokens[index], composer


def _text(self: object, tokens: Sequence[Token], index: int, options: object, env: Env) -> str:
    token, composer = _at(tokens, index, env)
    for numeral in typed_numerals(token.content):
        composer.fault(f"the number {numeral} is typed by hand.", REMEDY % numeral)
    for typed in _AS_TYPED.findall(token.content):
        composer.fault(f"{typed} would stand on the page as it is typed.",
                       "There is no HTML, and links lead to https:// or within the course. Use Markdown, or set it as code.")
    if token.content.endswith("!") and tokens[index + 1:] and tokens[index + 1].type == "link_open":
        composer.fault("there are no pictures in a lesson.", "Draw it with ::figure, or take it out.")
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
                   "Braces hold a given, a source, an axis or a literal: {P}, {source id}, {data: word}, {!8}; "
                   "\\{ is a plain brace.")
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
    return block_html(code or "", f"Code, {language}") + "\n"


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


RULES = {
    "text": _text, "computed": _computed, "braces": _braces, "math_inline": _math_inline, "math_block": _math_block,
    "link_open": _link_open, "link_close": _link_close, "strong_open": _strong, "strong_close": _strong, "fence": _fence,
    "heading_open": _heading, "heading_close": _heading, "table_open": _table_open, "table_close": _table_close,
    "directive": _directive,
}
