"""The Markdown of lessons: what is switched on, and our three additions to it.

    {= data_parallel.volume P=8 digits=1 =}    a computed number        {P}            a number the lesson gives
    {!ZeRO-3}                                  a numeral meant as typed {source ring}  a citation
    {data: batch}                              a word in its axis's hue {mark data}    the axis's mark
    ::figure volume P=4                        a directive on a line of its own
    :::note ... :::                            a directive with a body

This file only makes tokens; `app.course.compose` gives them their meaning and finds the faults.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from mdit_py_plugins.dollarmath import dollarmath_plugin

_BRACES = re.compile(r"\{=(?P<computed>[^{}\n]*)=\}|\{(?P<other>[^{}\n]*)\}")
_DIRECTIVE = re.compile(r"(?P<colons>:{2,})[ \t]*(?P<name>[A-Za-z_-]*)(?P<arguments>.*)")
NESTING = 20


def parser() -> MarkdownIt:
    """CommonMark with tables, formulas and our additions; no raw HTML, no pictures, no indented code."""
    markdown = MarkdownIt("commonmark", {"html": False, "typographer": True, "maxNesting": NESTING})
    markdown.enable(["table", "replacements", "smartquotes"])
    markdown.disable(["image", "code", "html_block", "html_inline", "lheading"])
    dollarmath_plugin(markdown, allow_labels=False, double_inline=False)
    markdown.inline.ruler.before("escape", "braces", _braces)
    markdown.block.ruler.before("fence", "directive", _directive, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    return markdown


def _braces(state: StateInline, silent: bool) -> bool:
    """A pair of braces. Backslash before the first makes it an ordinary character."""
    match = _BRACES.match(state.src, state.pos, state.posMax) if state.src[state.pos] == "{" else None
    if match is None:
        return False
    if not silent:
        computed = match["computed"]
        token = state.push("computed" if computed is not None else "braces", "", 0)
        token.content = (computed if computed is not None else match["other"]).strip()
        token.markup = match[0]
    state.pos = match.end()
    return True


def _directive(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A line that begins with colons: two for a directive alone, three or more for one with a body and a closing line."""
    first = state.bMarks[start] + state.tShift[start]
    match = _DIRECTIVE.fullmatch(state.src[first : state.eMarks[start]])
    if match is None:
        return False
    if silent:
        return True
    colons = match["colons"]
    body, following, closed = ("", start + 1, True) if len(colons) == 2 else _body(state, start, end, len(colons))
    token = state.push("directive", "", 0)
    token.info = match["name"]
    token.content = body
    token.map = [start, following]
    token.meta = {"arguments": match["arguments"].strip(), "closed": closed, "colons": len(colons)}
    state.line = following
    return True


def _body(state: StateBlock, start: int, end: int, colons: int) -> tuple[str, int, bool]:
    """Everything up to a line of as many colons: the text, the line after it, whether that line was there."""
    for line in range(start + 1, end):
        text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].strip()
        if len(text) >= colons and set(text) == {":"}:
            return state.getLines(start + 1, line, state.blkIndent, False), line + 1, True
    return state.getLines(start + 1, end, state.blkIndent, False), end, False
