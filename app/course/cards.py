"""Finished pieces of a page made from numbers alone: formula cards, rows of squares, the picture of the model."""

from __future__ import annotations

import re
from html import escape

from app.course.math import mathml
from app.theory.formula import Formula

MOST_SQUARES = 64
_AXIS_OF_ROOM = {"data_parallel": "data", "tensor_parallel": "tensor", "pipeline_parallel": "pipeline", "zero": "shard"}
_UNLIKE = "sent by all GPUs together"
_PUNCTUATED = re.compile(r"\(?<math>(?:(?!</math>).)*</math>[,.;:!?)]+|\(<math>(?:(?!</math>).)*</math>")


def mark(axis: str) -> str:
    """The small sign of an axis; the page defines the symbols."""
    return f'<svg class="mark ax-{axis}" aria-hidden="true"><use href="#m-{axis}"/></svg>'


def anchor(formula: Formula) -> str:
    """The id of a formula's card on its page."""
    return "formula-" + formula.name.replace(".", "-").replace("_", "-")


def card_html(formula: Formula) -> str:
    """A formula with everything a reader needs to use it honestly. Raises MathFault where its LaTeX cannot be set."""
    axis = _AXIS_OF_ROOM.get(formula.name.partition(".")[0])
    hue = f" ax-{axis}" if axis else ""
    sign = mark(axis) if axis else ""
    terms = "".join(
        f"<dt>{mathml(symbol.latex, False)}</dt><dd>{escape(_with_unit(symbol.meaning, symbol.unit))}</dd>"
        for symbol in formula.symbols
    )
    return (
        f'<article class="card{hue}" id="{anchor(formula)}">\n<h3>{sign}{escape(formula.title)}</h3>\n'
        f'<div>{mathml(formula.latex, True)}\n<dl class="terms">{terms}</dl></div>\n'
        f'<dl class="fine">{"".join(_fine_print(formula))}</dl>\n</article>\n'
    )


def _with_unit(meaning: str, unit: str) -> str:
    return f"{meaning}, in {unit}" if unit and unit not in meaning else meaning


def _fine_print(formula: Formula) -> list[str]:
    lines = [_line("Unit", escape(formula.unit or "none, a plain number"))]
    if formula.scope:
        scope = escape(formula.scope)
        lines.append(_line("Scope", f"<mark>{scope}</mark>" if formula.scope == _UNLIKE else scope))
    if formula.assumptions:
        lines.append(_line("Assumes", sentences_html(" ".join(_sentence(text) for text in formula.assumptions))))
    if formula.breaks:
        lines.append(_line("If not", sentences_html(formula.breaks)))
    sources = [f'<a href="{escape(source.url)}">{escape(source.text)}</a>' if source.url else escape(source.text)
               for source in formula.sources]
    if sources:
        lines.append(_line("Source" if len(sources) == 1 else "Sources", "; ".join(sources)))
    return lines


def sentences_html(marked: str) -> str:
    """Sentences of a card, with what stands between dollar signs set as formulas, which no line breaks apart."""
    pieces = marked.split("$")
    html = "".join(mathml(piece, False) if index % 2 else escape(piece) for index, piece in enumerate(pieces))
    return _PUNCTUATED.sub(lambda found: unbroken(found[0]), html)


def unbroken(html: str) -> str:
    """What no line may end within."""
    return f'<span class="unbroken">{html}</span>'


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _line(name: str, html: str) -> str:
    return f"<dt>{name}</dt><dd>{html}</dd>"


def squares(count: int, columns: int) -> str:
    """`count` small squares in rows of `columns`: one square is one number. They take the hue of the axis around them."""
    across, down = min(count, columns), -(-count // columns)
    path = "".join(f"M{index % columns * 13} {index // columns * 13}h11v11h-11z" for index in range(count))
    width, height = across * 13, down * 13
    return (f'<svg class="sq" width="{width}" height="{height}" viewBox="0 0 {width} {height}" aria-hidden="true">'
            f'<path class="cell" d="{path}"/></svg>')


def model_picture(layers: int, width: int) -> str:
    """The toy model, every weight a square: layers side by side, joined by a line."""
    span, gap = width * 24 - 4, 32
    grids = "".join(_grid(layer * (span + gap), width) for layer in range(layers))
    joins = "".join(f"M{layer * (span + gap) - gap + 2} {span / 2:g}h{gap - 4}" for layer in range(1, layers))
    names = "".join(f'<text x="{layer * (span + gap)}" y="{span + 24}">layer {layer + 1}</text>' for layer in range(layers))
    total = layers * (span + gap) - gap
    noun = "layer" if layers == 1 else "layers"
    title = f"The whole model: {layers} {noun}, each a matrix of {width} by {width} numbers"
    link = f'<path class="link" d="{joins}"/>' if joins else ""
    return (f'<svg class="pic model" viewBox="0 0 {total} {span + 36}" role="img"><title>{title}</title>'
            f"{grids}{link}{names}</svg>\n")


def _grid(left: int, width: int) -> str:
    path = "".join(f"M{left + column * 24} {row * 24}h20v20h-20z" for row in range(width) for column in range(width))
    return f'<path class="ink" d="{path}"/>'
