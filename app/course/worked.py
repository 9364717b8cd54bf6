"""A calculation done before the reader's eyes: each line an expression, its computed value, and as many small squares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.course import cards
from app.course.expression import ExpressionFault, parse_expression, shown_number
from app.course.model import AXES
from app.course.yaml_file import Fields

if TYPE_CHECKING:
    from app.course.compose import Composer

# The style sheet alone covers the numbers; each cover is a box that is ticked to take it away.
COVER = '<label class="cover"><input type="checkbox" autocomplete="off">Cover the numbers</label>\n'
PEEK = '<input type="checkbox" class="peek" autocomplete="off" aria-label="Uncover this number">'


def worked_html(composer: Composer, fields: Fields) -> str:
    """The table of one entry under `worked` in lesson.yaml. Faults name that file, not the text that placed it."""
    fields.allow("id", "groups")
    own = composer.sibling(fields.file_name, fields.item.key)
    groups = "".join(_group(own, group) for group in fields.mappings("groups"))
    return f'{COVER}<table class="steps wide">\n{groups}</table>\n'


def _group(composer: Composer, fields: Fields) -> str:
    fields.allow("title", "axis", "lines")
    axis = fields.string("axis", required=False)
    if axis and axis not in AXES:
        fields.fault("axis", f"there is no axis {axis!r}.", f"Write one of {', '.join(AXES)}, or leave it out.")
    known = axis in AXES
    sign = cards.mark(axis) if known else ""
    rows = "".join(_row(composer, line) for line in fields.mappings("lines"))
    opening = f'<tbody class="ax-{axis}">' if known else "<tbody>"
    composer.key = fields.item.key
    title = fields.text("title")
    heading = "" if title is None else composer.html(str(title.value), title.text_line)
    return f'{opening}<tr><th scope="rowgroup" colspan="3">{sign}{heading}</th></tr>\n{rows}</tbody>\n'


def _row(composer: Composer, fields: Fields) -> str:
    fields.allow("math", "value", "why", "squares", "sum")
    composer.key = fields.item.key
    math, why = fields.text("math"), fields.text("why")
    if math is None or why is None:
        return ""
    expression = composer.html(f"${math.value}$", math.text_line)
    reason = composer.html(str(why.value), why.text_line)
    value, drawing = _value(composer, fields)
    last = ' class="sum"' if fields.flag("sum") else ""
    shown = f"{value}{PEEK}" if value else ""
    return f'<tr{last}><td>{expression}<span class="why">{reason}</span></td><td>{shown}</td><td>{drawing}</td></tr>\n'


def _value(composer: Composer, fields: Fields) -> tuple[str, str]:
    """The computed number, and its squares where `squares` says how many stand in a row."""
    written = fields.text("value")
    if written is None:
        return "", ""
    try:
        expression = parse_expression(str(written.value))
        value = expression.evaluate(composer.draft.given)
    except ExpressionFault as fault:
        fields.fault("value", fault.problem, fault.remedy)
        return "", ""
    composer.draft.print(expression, fields.file_name, written.line)
    columns = fields.number("squares")
    if columns is None:
        return shown_number(value), ""
    if value not in range(1, cards.MOST_SQUARES + 1) or columns not in range(1, 17):
        fields.fault("squares", f"{shown_number(value)} squares in rows of {columns} cannot be drawn.",
                     f"Draw whole numbers from 1 to {cards.MOST_SQUARES}, 1 to 16 in a row; leave squares out otherwise.")
        return shown_number(value), ""
    return shown_number(value), cards.squares(int(value), int(columns))
