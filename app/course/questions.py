"""Checkpoint questions as lesson.yaml writes them: read, evaluated at every set of numbers, and checked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Literal

from app.course.compose import Composer
from app.course.draft import Draft
from app.course.expression import Expression, ExpressionFault, Given, Value, formula_expression, parse_expression
from app.course.math import MathFault
from app.course.model import Choice, Question
from app.course.template import Template
from app.course.yaml_file import Fields, Item
from app.theory import FORMULAS

FEWEST_QUESTIONS = 4
FEWEST_VARYING = 2
MOST_GIVENS = 200
_CHOICE_KEYS = ("formula", "given", "value", "literal", "reason", "label", "feedback")


def read_questions(draft: Draft, fields: Fields) -> tuple[Question, ...]:
    """All questions of the file that can be asked; faults for the others."""
    entries = fields.mappings("questions")
    questions = tuple(question for entry in entries if (question := _question(draft, entry)) is not None)
    if len(entries) < FEWEST_QUESTIONS:
        fields.fault("questions", f"a lesson needs {FEWEST_QUESTIONS} questions or more; here are {len(entries)}.",
                     "Add questions.")
    varying = sum(entry.has("varies") for entry in entries)
    if varying < FEWEST_VARYING:
        fields.fault("questions", f"{FEWEST_VARYING} questions or more must change their numbers with each try, not {varying}.",
                     "Add `varies:` with sets of numbers to a question.")
    return questions


def _question(draft: Draft, fields: Fields) -> Question | None:
    fields.allow("id", "kind", "prompt", "given", "unit", "digits", "tolerance", "answer", "wrong", "varies", "otherwise")
    before = len(draft.faults)
    composer = Composer(draft, fields.file_name, fields.item.key)
    name = fields.string("id")
    if name:
        draft.declare("question", name, fields.file_name, fields.item.line, fields.item.key)
    kind = fields.string("kind")
    if kind and kind not in ("choice", "number"):
        fields.fault("kind", f"there is no kind {kind!r}.", "Write choice or number.")
    prompt = _template(composer, fields, "prompt", inline=True)
    answer_fields = fields.mapping("answer")
    if answer_fields is None:
        fields.fault("answer", "answer is missing.", "Add `answer:` with formula and feedback.")
    answer = None if answer_fields is None else _choice(composer, answer_fields)
    wrong = [_choice(composer, entry) for entry in fields.mappings("wrong", required=kind == "choice")]
    otherwise = _template(composer, fields, "otherwise") if kind == "number" else None
    if kind == "choice" and fields.has("otherwise"):
        fields.fault("otherwise", "a choice has no other answers.", "Give each wrong option its own feedback.")
    if kind == "choice" and not wrong:
        fields.fault("wrong", "a choice needs wrong options.", "Add mistakes that somebody really makes, each with feedback.")
    givens = _givens(draft.given, fields)
    if answer_fields is not None:
        _check_unit(fields, answer_fields)
    if len(draft.faults) > before or prompt is None or answer is None:
        return None
    question = Question(
        name, _kind(kind), prompt, fields.string("unit", required=False), _digits(fields), _tolerance(fields),
        givens, answer, tuple(choice for choice in wrong if choice is not None), otherwise,
    )
    _check_every_try(composer, fields, question)
    return question


def _kind(written: str) -> Literal["choice", "number"]:
    return "choice" if written == "choice" else "number"


def _digits(fields: Fields) -> int | None:
    digits = fields.number("digits")
    if digits is not None and digits not in range(10):
        fields.fault("digits", f"{digits} is no number of decimals.", "Write 0 to 9.")
    return None if digits is None else int(digits)


def _tolerance(fields: Fields) -> Fraction:
    """Relative: 0.01 accepts one percent more or less. 0, the default, accepts the exact value only."""
    tolerance = fields.number("tolerance")
    if tolerance is not None and not 0 <= tolerance < 1:
        fields.fault("tolerance", f"the tolerance {tolerance} is no share of the answer.",
                     "Write a number from 0 to below 1, as 0.01.")
    return Fraction(tolerance or 0)


def _check_unit(fields: Fields, answer: Fields) -> None:
    """192 is right in elements and wrong in bytes: where a formula answers, the question asks in its unit."""
    formula = FORMULAS.get(answer.string("formula", required=False))
    unit = fields.string("unit", required=False)
    if formula is not None and formula.unit and unit not in ("", formula.unit):
        fields.fault("unit", f"{formula.name} is counted in {formula.unit}, not in {unit}.",
                     f"Write `unit: {formula.unit}`, or answer with a formula that counts in {unit}.")


def _template(composer: Composer, fields: Fields, name: str, *, inline: bool = False, required: bool = True) -> Template | None:
    item = fields.text(name, required=required)
    if item is None:
        return None
    composer.key = item.key
    text = str(item.value)
    return composer.template(composer.inline(text, item.text_line) if inline else composer.blocks(text, item.text_line))


def _choice(composer: Composer, fields: Fields) -> Choice | None:
    """An answer or a wrong option: a value, perhaps a label in words, and what is said to whoever chooses it."""
    fields.allow(*_CHOICE_KEYS)
    value = _expression(fields)
    label = _template(composer, fields, "label", inline=True, required=False)
    feedback = _template(composer, fields, "feedback")
    return None if value is None or feedback is None else Choice(value, label, feedback)


def _expression(fields: Fields) -> Expression | None:
    """One of: `formula` with `given`, `value` with an expression, `literal` with a `reason`."""
    ways = [name for name in ("formula", "value", "literal") if fields.has(name)]
    if len(ways) != 1:
        fields.fault(ways[1] if ways else "formula", "the value must come from one of formula, value and literal.",
                     "Write `formula: data_parallel.volume`, `value: an expression`, or `literal:` with a `reason:`.")
        return None
    if ways == ["literal"]:
        number = fields.number("literal")
        if not fields.string("reason", required=False):
            fields.fault("literal", "a literal needs a reason.", "Say under `reason:` why no formula gives this number.")
        return None if number is None else parse_expression(str(number))
    if ways == ["value"]:
        written = fields.string("value")
        try:
            return parse_expression(written) if written else None
        except ExpressionFault as fault:
            fields.fault("value", fault.problem, fault.remedy)
            return None
    name = fields.string("formula")
    if name not in FORMULAS:
        fields.fault("formula", f"there is no formula {name!r}.", f"Known are {', '.join(FORMULAS)}.")
        return None
    given = fields.mapping("given")
    return formula_expression(name, {} if given is None else {key: str(item.value) for key, item in given.items()})


def _givens(lesson: Given, fields: Fields) -> tuple[Given, ...]:
    """The first try's numbers, then every set under `varies`; lists and ranges in a set are multiplied out."""
    own = read_given(fields, "given")
    base = {**lesson, **own}
    givens: list[Given] = [base]
    for entry in fields.mappings("varies", required=False):
        for numbers in _sets(entry):
            candidate = {**base, **numbers}
            if candidate not in givens:
                givens.append(candidate)
    if fields.has("varies") and len(givens) == 1:
        fields.fault("varies", "it holds no numbers other than the first ones.", "Add sets such as `- {P: 16}`.")
    if len(givens) > MOST_GIVENS:
        fields.fault("varies", f"it makes {len(givens)} sets of numbers.", f"Keep to {MOST_GIVENS}.")
    return tuple(givens[:MOST_GIVENS])


def _sets(fields: Fields) -> Iterator[dict[str, Value]]:
    choices = [[(name, number) for number in _numbers(fields, name, item)] for name, item in fields.items()]
    for combination in itertools.islice(itertools.product(*choices), MOST_GIVENS + 1):
        yield dict(combination)


def _numbers(fields: Fields, name: str, item: Item) -> list[Value]:
    """A number, a list of numbers, or {from: 2, to: 16, step: 2}."""
    if isinstance(item.value, Mapping):
        bounds = fields.mapping(name)
        assert bounds is not None
        bounds.allow("from", "to", "step")
        first, last, step = bounds.number("from"), bounds.number("to"), bounds.number("step")
        step = 1 if step is None else step
        if not isinstance(first, int) or not isinstance(last, int) or not isinstance(step, int) or step < 1 or first > last:
            bounds.fault("from", "this is no range of whole numbers.", "Write {from: 2, to: 16, step: 2}.")
            return []
        return [*range(first, last + 1, step)][: MOST_GIVENS + 1]
    entries = item.value if isinstance(item.value, list) else [item]
    numbers = [fields.as_number(entry) for entry in entries]
    return [number for number in numbers if number is not None]


def read_given(fields: Fields, name: str) -> dict[str, Value]:
    """A mapping of names to numbers; empty where the key is absent."""
    given = fields.mapping(name)
    if given is None:
        return {}
    numbers = {key: given.as_number(item) for key, item in given.items()}
    return {key: number for key, number in numbers.items() if number is not None}


def _check_every_try(composer: Composer, fields: Fields, question: Question) -> None:
    """Each set of numbers must give an answer, wrong options that differ from it and from one another, and feedback that
    keeps the answer to itself."""
    for given in question.givens:
        numbers = ", ".join(f"{name}={value}" for name, value in given.items())
        try:
            _check_try(fields, question, given, numbers)
        except ExpressionFault as fault:
            fields.fault("", f"with {numbers}: {fault.problem}", fault.remedy)
        except MathFault as fault:
            fields.fault("", f"with {numbers}: LaTeX: {fault}", "Correct the formula there.")


def _check_try(fields: Fields, question: Question, given: Given, numbers: str) -> None:
    answer = question.answer.value.evaluate(given)
    seen = {question.option(question.answer, given).value: "the answer"}
    for item, choice in zip(fields.sequence("wrong", required=False), question.wrong, strict=True):
        shown = question.option(choice, given).value
        if choice.value.evaluate(given) == answer:
            fields.fault_at(item, f"with {numbers} it equals the answer.",
                            "Take those numbers out of `varies`, or find another mistake.")
        elif shown in seen:
            fields.fault_at(item, f"with {numbers} it reads like {seen[shown]}.",
                            "Take those numbers out of `varies`, or change one of the two.")
        seen.setdefault(shown, item.key)
        if choice.label is None:
            _check_discretion(fields, item, choice.feedback, answer, given)
        choice.feedback.html(given)
    if question.otherwise is not None:
        _check_discretion(fields, fields.item, question.otherwise, answer, given)
        question.otherwise.html(given)
    question.answer.feedback.html(given)
    question.prompt.html(given)


def check_first_numbers(draft: Draft, fields: Fields, questions: Sequence[Question]) -> None:
    """The answer to a first try must be worked out, not looked up: the page may not compute the same from the same numbers."""
    entries = {entry.string("id"): entry for entry in fields.mappings("questions")}
    for question in questions:
        if question.answer.label is None and (printed := _place_of_answer(draft, question)) is not None:
            file, line = printed
            entries[question.id].fault("answer", f"line {line} of {Path(file).name} shows it already: "
                                       f"{question.answer.value.text} at the same numbers.",
                                       "Ask with other numbers: write them under `given`.")


def _place_of_answer(draft: Draft, question: Question) -> tuple[str, int] | None:
    """Where the page computes the same as the first try's answer. None, too, for an answer without a value: told already."""
    try:
        return draft.printed.get(question.answer.value.settled(question.givens[0]))
    except ExpressionFault:
        return None


def _check_discretion(fields: Fields, item: Item, feedback: Template, answer: Value, given: Given) -> None:
    for shown in feedback.shown():
        if not shown.expression.is_given and shown.expression.evaluate(given) == answer:
            fields.fault_at(item, f"its feedback gives the answer away: {{= {shown.expression.text} =}}.",
                         "Say which mistake it is and where to look, never the right number.")
