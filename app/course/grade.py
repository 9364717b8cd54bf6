"""Reading an answer and grading it. Pure: the same answer to the same instance gets the same verdict."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from fractions import Fraction
from html import escape
from typing import Literal

from app.course.expression import Value, shown_number
from app.course.model import Choice, Instance, Option, Question

LONGEST_ANSWER = 80
LARGEST_ANSWER = 10**30  # far above anything that a lesson counts, and short enough to be said back
_UNITS = {
    "elements": ("element", "elements", "number", "numbers", "value", "values"),
    "bytes": ("b", "byte", "bytes"),
    "parameters": ("parameter", "parameters", "params", "weight", "weights"),
    "tokens": ("token", "tokens"),
    "GPUs": ("gpu", "gpus", "rank", "ranks"),
    "stages": ("stage", "stages"),
    "sequences": ("sequence", "sequences"),
    "all-reduces": ("all-reduce", "all-reduces", "allreduce", "allreduces"),
}
_BYTES_IN = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_DIGITS = r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,3}(?: [0-9]{3})+|[0-9]+(?:_[0-9]+)*"
_ANSWER = re.compile(
    rf"(?P<sign>[-+]?) ?(?P<whole>{_DIGITS})?(?P<decimals>\.[0-9]*)?(?:[eE](?P<power>[-+]?[0-9]{{1,2}}))?"
    r"(?: ?/ ?(?P<under>[1-9][0-9]*))? ?(?P<unit>[A-Za-z%/ -]*)"
)


@dataclass(frozen=True)
class Verdict:
    """What is said about one answer. `unclear` is no try: the answer could not be read, and nothing is held against it.

    `value` is the answer as it was understood (a form value for a choice), `headline` the first words ("56, yes."),
    `feedback_html` what follows.
    """

    status: Literal["right", "wrong", "unclear"]
    headline: str
    feedback_html: str
    value: str

    @property
    def correct(self) -> bool:
        return self.status == "right"


class Unreadable(ValueError):
    """An answer that is no number here; the message is for the learner."""


def grade(question: Question, instance: Instance, raw: str) -> Verdict:
    """The verdict on what a learner sent for this instance."""
    if len(raw) > LONGEST_ANSWER:
        return _unclear(f"That is longer than an answer can be: {LONGEST_ANSWER} characters.")
    if question.kind == "choice":
        return _grade_choice(question, instance, raw)
    return _grade_number(question, instance, raw)


def _grade_choice(question: Question, instance: Instance, raw: str) -> Verdict:
    sent = " ".join(raw.split())
    choices = {question.option(choice, instance.given).value: choice for choice in (question.answer, *question.wrong)}
    if sent not in choices:
        sent = _same_number(choices, sent, instance.unit) or ""
    if not sent:
        return _unclear("Choose one of the answers, then check it.")
    choice = choices[sent]
    option = question.option(choice, instance.given)
    verdict = _verdict(choice is question.answer, option, choice.feedback.html(instance.given))
    in_words = choice.label is not None and not verdict.correct  # "Not They double." would be no English
    return replace(verdict, headline="Not quite.") if in_words else verdict


def _same_number(choices: dict[str, Choice], sent: str, unit: str) -> str | None:
    """The option that shows the same number, where an answer was typed instead of chosen: 56.0 for 56."""
    try:
        number = parse_number(sent, unit)
    except Unreadable:
        return None
    return next((shown for shown, choice in choices.items() if choice.label is None and _plain(shown) == number), None)


def _plain(shown: str) -> Fraction:
    return Fraction(shown.replace(",", ""))


def _grade_number(question: Question, instance: Instance, raw: str) -> Verdict:
    try:
        number = parse_number(raw, instance.unit)
    except Unreadable as help_text:
        return _unclear(str(help_text))
    given = instance.given
    option = Option(shown_number(number), escape(shown_number(number)))
    if _close(number, question.answer.value.evaluate(given), question.tolerance):
        return _verdict(True, option, question.answer.feedback.html(given))
    for mistake in question.wrong:
        if _close(number, mistake.value.evaluate(given), question.tolerance):
            return _verdict(False, option, mistake.feedback.html(given))
    assert question.otherwise is not None
    return _verdict(False, option, question.otherwise.html(given))


def _close(number: Fraction, wanted: Value, tolerance: Fraction) -> bool:
    """Equal, or within the tolerance as a share of the wanted value. A float stands for the decimal it prints as."""
    exact = Fraction(str(wanted)) if isinstance(wanted, float) else Fraction(wanted)
    return abs(number - exact) <= tolerance * abs(exact)


def _verdict(right: bool, option: Option, feedback: str) -> Verdict:
    headline = f"{option.html[:1].upper()}{option.html[1:]}, yes." if right else f"Not {option.html}."
    return Verdict("right" if right else "wrong", headline, feedback, option.value)


def _unclear(help_text: str) -> Verdict:
    return Verdict("unclear", "Not counted as a try.", f"<p>{escape(help_text)}</p>\n", "")


def parse_number(raw: str, unit: str) -> Fraction:
    """The number in an answer, in the question's unit. Raises Unreadable with words that help.

    Reads 56, 56.0, 1,000, 1 000, 1_000, 5.6e1, 7/4, each with the unit or without; KB to TiB where bytes are asked for.
    """
    text = " ".join(unicodedata.normalize("NFKC", raw).replace("\u2212", "-").split())
    match = _ANSWER.fullmatch(text)
    if not text or match is None or not (match["whole"] or len(match["decimals"] or "") > 1):
        raise Unreadable(_help(text, unit))
    number = Fraction(f"{match['sign']}{re.sub('[, _]', '', match['whole'] or '0')}")
    decimals = (match["decimals"] or ".")[1:]
    if decimals:
        share = Fraction(int(decimals), 10 ** len(decimals))
        number += -share if match["sign"] == "-" else share
    number *= Fraction(10) ** int(match["power"] or 0)
    number /= int(match["under"] or 1)
    number *= _factor(match["unit"].strip(), unit)
    if abs(number) > LARGEST_ANSWER:
        raise Unreadable("That is more than anything here could count to. Look for a slip in the number of digits.")
    return number


def _help(text: str, unit: str) -> str:
    if re.search(r"[0-9],[0-9]{1,2}(?![0-9])", text):
        return "A comma sets off thousands here. Write decimals with a point, as in 1.5."
    example = f"56 {unit}".strip()
    return f"Write one number, as in 56 or {example}." if unit else "Write one number, as in 56."


def _factor(written: str, unit: str) -> int:
    """What the number is to be multiplied by: 1 for the question's own unit or none, more for KB and its like."""
    word = written.lower()
    if not word or word == unit.lower() or word in _UNITS.get(unit, ()):
        return 1
    if unit == "bytes" and word in _BYTES_IN:
        return _BYTES_IN[word]
    asked = unit or "a plain number"
    known = next((name for name, words in _UNITS.items() if word in words), None)
    if known is None and word in _BYTES_IN:
        known = "bytes"
    if known is None:
        raise Unreadable(f"This asks for {asked}, and {written!r} is no unit of it. Leave the unit out if in doubt.")
    if not unit:
        remedy = "Leave the unit out."
    else:
        remedy = "Convert it, then check again." if {unit, known} == {"bytes", "elements"} else f"Count {unit} instead."
    raise Unreadable(f"This asks for {asked}, and you answered in {known}. {remedy}")
