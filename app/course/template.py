"""Text with holes for computed numbers: filled once for a section, anew for each try of a question."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.course.expression import Expression, Given, in_words, shown_number
from app.course.math import mathml

_TAG = re.compile(r"<[^>]*>")
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True)
class Shown:
    """One computed number in running text."""

    expression: Expression
    digits: int | None = None
    unit: str = ""
    words: bool = False

    def text(self, given: Given) -> str:
        value = self.expression.evaluate(given)
        number = in_words(value) if self.words else shown_number(value, self.digits)
        return f"{number}\u00a0{self.unit}" if self.unit else number


@dataclass(frozen=True)
class MathPiece:
    """A formula in LaTeX, cut where computed numbers stand."""

    pieces: tuple[str | Shown, ...]
    display: bool

    def latex(self, given: Given) -> str:
        """Thousands get {,}, or TeX would set the comma as the end of a list item."""
        return "".join(piece if isinstance(piece, str) else piece.text(given).replace(",", "{,}") for piece in self.pieces)

    def html(self, given: Given) -> str:
        return mathml(self.latex(given), self.display)


@dataclass(frozen=True)
class Template:
    """HTML with holes. Raises ExpressionFault or MathFault when filled with numbers it does not allow."""

    parts: tuple[str | Shown | MathPiece, ...]

    def html(self, given: Given) -> str:
        return "".join(_filled(part, given) for part in self.parts)

    def plain(self, given: Given) -> str:
        """Only the text: for labels that travel through a form."""
        return _BLANKS.sub(" ", html.unescape(_TAG.sub("", self.html(given)))).strip()

    def shown(self) -> Iterator[Shown]:
        """Every computed number, those inside formulas too."""
        for part in self.parts:
            if isinstance(part, Shown):
                yield part
            elif isinstance(part, MathPiece):
                yield from (piece for piece in part.pieces if isinstance(piece, Shown))


def _filled(part: str | Shown | MathPiece, given: Given) -> str:
    if isinstance(part, str):
        return part
    return html.escape(part.text(given)) if isinstance(part, Shown) else part.html(given)
