"""What each directive becomes: finished HTML, or a slot that the page fills."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Literal

from markdown_it.token import Token

from app.course import cards
from app.course.code import quote_html
from app.course.model import Slot
from app.course.worked import worked_html
from app.figures import FIGURES
from app.figures.engine import start_values
from app.theory import FORMULAS

if TYPE_CHECKING:
    from app.course.compose import Composer

Words = list[str]


def directive_html(composer: Composer, token: Token) -> str:
    """The HTML of one directive; its faults are told to the composer."""
    name = token.info
    if name not in ALONE and name not in WITH_BODY:
        known = ", ".join([*(f"::{alone}" for alone in ALONE), *(f":::{body}" for body in WITH_BODY)])
        composer.fault(f"there is no directive {name!r}.", f"Known are {known}.")
        return ""
    if (token.meta["colons"] > 2) != (name in WITH_BODY):
        example = f":::{name}, the text, and a line of :::" if name in WITH_BODY else f"::{name} with two colons, on one line"
        composer.fault(f"the directive {name} is written in the other form.", f"Write {example}.")
        return ""
    if not token.meta["closed"]:
        composer.fault(f"the directive {name} is never closed.", "End it with a line of three colons.")
        return ""
    try:
        words = shlex.split(token.meta["arguments"])
    except ValueError:
        composer.fault("a quotation mark is not closed.", "Close it, or leave it out.")
        return ""
    if name in WITH_BODY:
        return WITH_BODY[name](composer, words, token)
    return ALONE[name](composer, words)


def _one_name(composer: Composer, words: Words, directive: str) -> str | None:
    if len(words) == 1:
        return words[0]
    composer.fault(f"::{directive} takes one name.", f"Write ::{directive} NAME.")
    return None


def _figure(composer: Composer, words: Words) -> str:
    """::figure volume P=4 L=2: the figure, with starting values for its fields."""
    draft = composer.draft
    name = words[0] if words else ""
    fields = draft.figures.get(name)
    if fields is None:
        composer.fault(f"there is no figure {name!r}.", f"Known are {', '.join(draft.figures)}.")
        return ""
    params: dict[str, str] = {}
    for word in words[1:]:
        field, equals, value = word.partition("=")
        if not equals or field not in fields:
            composer.fault(f"the figure {name} has no field {field!r}.",
                           f"Its fields are {', '.join(fields)}; write FIELD=VALUE.")
            continue
        params[field] = value
    if name in FIGURES:
        try:
            start_values(FIGURES[name], params)
        except ValueError as refused:
            composer.fault(f"the figure {name} cannot start there: {refused}", "Choose values that its controls allow.")
    draft.shown_figures.append(name)
    return _slot(composer, Slot("figure", name, params))


def _declared(kind: Literal["question", "experiment", "prediction"]) -> Callable[[Composer, Words], str]:
    """::question id and the like: something that lesson.yaml declares."""

    def placed(composer: Composer, words: Words) -> str:
        name = _one_name(composer, words, kind)
        if name is None:
            return ""
        if not composer.draft.use(kind, name):
            _unknown(composer, kind, name)
            return ""
        return _slot(composer, Slot(kind, name))

    return placed


def _recall(composer: Composer, words: Words) -> str:
    """::recall id: the learner's own guess again, beside the answer."""
    name = _one_name(composer, words, "recall")
    if name is None:
        return ""
    if ("prediction", name) not in composer.draft.declared:
        _unknown(composer, "prediction", name)
        return ""
    if ("prediction", name) not in composer.draft.used:
        composer.fault(f"the prediction {name} is recalled before it is asked for.", f"Place ::prediction {name} further up.")
    return _slot(composer, Slot("recall", name))


def _unknown(composer: Composer, kind: str, name: str) -> None:
    known = ", ".join(composer.draft.names(kind)) or "none yet"
    composer.fault(f"lesson.yaml has no {kind} {name!r}.", f"Name one of those there ({known}) or add it.")


def _slot(composer: Composer, slot: Slot) -> str:
    anchor = f"{slot.kind}-{slot.name.replace('_', '-')}"
    composer.draft.add_anchor(anchor, composer.file, composer.line, composer.key)
    return f'<div class="slot" id="{escape(anchor)}">{composer.hole(slot)}</div>\n'


def _formula(composer: Composer, words: Words) -> str:
    """::formula data_parallel.volume: the card."""
    name = _one_name(composer, words, "formula")
    if name is None:
        return ""
    formula = FORMULAS.get(name)
    if formula is None:
        composer.fault(f"there is no formula {name!r}.", f"Known are {', '.join(FORMULAS)}.")
        return ""
    composer.draft.add_anchor(cards.anchor(formula), composer.file, composer.line, composer.key)
    return cards.card_html(formula)


def _code(composer: Composer, words: Words) -> str:
    """::code ring.all_reduce: the kernel function as it runs. A word more, folded, and it waits behind its name."""
    folded = words[1:] == ["folded"]
    name = _one_name(composer, words[:1] if folded else words, "code")
    if name is None:
        return ""
    quote = composer.draft.code(name)
    if quote is None:
        composer.fault(f"kernels has no function {name!r}.",
                       "Write FILE.FUNCTION, as in ring.all_reduce, or FOLDER.FILE.CLASS.METHOD.")
        return ""
    return quote_html(quote, folded)


def _worked(composer: Composer, words: Words) -> str:
    """::worked id: a calculation of lesson.yaml, line by line."""
    name = _one_name(composer, words, "worked")
    if name is None:
        return ""
    if not composer.draft.use("worked", name):
        _unknown(composer, "worked", name)
        return ""
    composer.draft.add_anchor(f"worked-{name}", composer.file, composer.line, composer.key)
    return worked_html(composer, composer.draft.worked[name])


def _sources(composer: Composer, words: Words) -> str:
    """::sources: the list that citations lead to."""
    if words:
        composer.fault("::sources takes nothing.", "Write ::sources; to cite one in the text write {source ID}.")
    composer.draft.add_anchor("sources", composer.file, composer.line, composer.key)
    for source in composer.draft.sources.values():
        composer.draft.add_anchor(source.anchor, composer.file, composer.line, composer.key)
    items = "".join(
        f'<li id="{escape(source.anchor)}">{escape(source.text)} <a href="{escape(source.url)}">{escape(source.url)}</a></li>\n'
        for source in composer.draft.sources.values()
    )
    return f'<h3 id="sources">Sources</h3>\n<ol class="sources small">\n{items}</ol>\n'


def _model(composer: Composer, words: Words) -> str:
    """::model: the toy model at the lesson's L and H, one square a number."""
    if words:
        composer.fault("::model takes nothing.", "It draws the L and H that lesson.yaml gives.")
    layers, width = composer.draft.given.get("L"), composer.draft.given.get("H")
    if not isinstance(layers, int) or not isinstance(width, int) or not 0 < layers * width * width <= cards.MOST_SQUARES:
        composer.fault(f"::model needs L and H with at most {cards.MOST_SQUARES} weights.",
                       "Give both under `given` in lesson.yaml.")
        return ""
    return cards.model_picture(layers, width)


def _note(composer: Composer, words: Words, token: Token) -> str:
    """:::note: a note in the margin, on a narrow screen in the text. One paragraph stands without <p>, as a caption does."""
    if words:
        composer.fault(":::note takes nothing on its first line.", "Write the text on the lines below.")
    tokens = composer.tokens(token.content, token.meta["line"] + 1)
    paragraphs = [inner for inner in tokens if inner.level == 0 and inner.type in ("paragraph_open", "paragraph_close")]
    if len(paragraphs) == 2:
        for inner in paragraphs:
            inner.hidden = True
    enclosing, composer.in_note = composer.in_note, True
    body = composer.render(tokens).strip()
    composer.in_note = enclosing
    return f'<aside class="note">{body}</aside>\n'


ALONE: dict[str, Callable[[Composer, Words], str]] = {
    "figure": _figure, "question": _declared("question"), "experiment": _declared("experiment"),
    "prediction": _declared("prediction"), "recall": _recall, "formula": _formula, "code": _code, "worked": _worked,
    "sources": _sources, "model": _model,
}
WITH_BODY: dict[str, Callable[[Composer, Words, Token], str]] = {"note": _note}
