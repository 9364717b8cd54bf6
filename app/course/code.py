"""Kernel functions quoted by name: read from their file as text, never imported, so the code shown is the code that ran."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from kernels import schedule

_KERNELS = Path(schedule.__file__).parent


@dataclass(frozen=True)
class Quote:
    """The text of one function or class, and where it stands."""

    file: str
    line: int
    name: str
    text: str


CodeSource = Callable[[str], Quote | None]
"""Finds `ring.all_reduce` (module path within kernels, then function, class or method); None where there is no such thing."""


def kernel_quote(name: str) -> Quote | None:
    """The code of a name in kernels, as `strategies.data_parallel.build`."""
    words = name.split(".")
    if not all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", word) for word in words):
        return None
    for cut in range(len(words) - 1, 0, -1):
        path = _KERNELS.joinpath(*words[:cut]).with_suffix(".py")
        if path.is_file():
            return _quote(path, words[cut:])
    return None


@lru_cache(maxsize=256)
def _parsed(path: Path) -> tuple[str, ast.Module]:
    text = path.read_text(encoding="utf-8")
    return text, ast.parse(text)


def _quote(path: Path, names: list[str]) -> Quote | None:
    text, tree = _parsed(path)
    scope: ast.Module | ast.stmt = tree
    for name in names:
        found = _definition(scope, name)
        if found is None:
            return None
        scope = found
    assert isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    first = min([scope.lineno, *(decorator.lineno for decorator in scope.decorator_list)])
    lines = text.splitlines()[first - 1 : scope.end_lineno]
    file = f"kernels/{path.relative_to(_KERNELS).as_posix()}"
    return Quote(file, first, ".".join(names), textwrap.dedent("\n".join(lines)))


def _definition(scope: ast.Module | ast.stmt, name: str) -> ast.stmt | None:
    for statement in getattr(scope, "body", []):
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and statement.name == name:
            return statement
    return None


def highlighted(text: str, language: str) -> str | None:
    """Code with Pygments classes, without a wrapper; None where the language is not known."""
    try:
        lexer = get_lexer_by_name(language)
    except ClassNotFound:
        return None
    return str(highlight(text, lexer, HtmlFormatter(nowrap=True))).rstrip("\n")


def block_html(highlighted_code: str, label: str) -> str:
    """A block of code that scrolls within itself, by keyboard too."""
    return (f'<code class="cmd highlight" tabindex="0" role="region" aria-label="{escape(label)}">'
            f"{highlighted_code}</code>")


def quote_html(quote: Quote, folded: bool = False) -> str:
    """The quoted code as a figure whose caption says where it stands; folded, the caption opens it."""
    code = block_html(highlighted(quote.text, "python") or "", f"{quote.name} in {quote.file}")
    caption = f"<b>{escape(quote.name)}</b> as it runs, {escape(quote.file)}, line {quote.line}."
    if folded:
        return f'<details class="data wide"><summary>{caption}</summary>{code}</details>\n'
    return f'<figure class="fig wide">{code}<figcaption>{caption}</figcaption></figure>\n'
