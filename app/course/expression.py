"""Values that lesson text names: a formula with its numbers, a given, or a short sum of such.

    data_parallel.volume                              takes P, L and H from what the lesson gives
    data_parallel.volume P=8                          the same with another P
    data_parallel.volume P=before                     P is the given called `before`
    collectives.ring_all_reduce s=data_parallel.params   s is what another formula gives
    data_parallel.volume - pipeline_parallel.taught_volume m=1

Operators are + - * / between blanks; * and / bind more tightly. There are no brackets: what needs them is a formula.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

from app.theory import FORMULAS, evaluate
from app.theory.formula import Formula

Value = Fraction | int | float
Given = Mapping[str, Value]

_NUMBER = re.compile(r"-?[0-9][0-9_]{0,29}(\.[0-9]{1,30}|/[1-9][0-9]{0,29})?")
_LARGEST = 10**50
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_FORMULA = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
_OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": lambda a, b: _divided(a, b),
}
_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)


class ExpressionFault(ValueError):
    """An expression that has no value: what is wrong, and what to write instead."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem} {remedy}")
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True)
class Call:
    """A formula of FORMULAS, with the arguments that differ from what the lesson gives."""

    formula: str
    arguments: tuple[tuple[str, str], ...]

    def value(self, given: Given) -> Value:
        formula = FORMULAS.get(self.formula)
        if formula is None:
            raise ExpressionFault(f"there is no formula {self.formula!r}.", f"Known are {', '.join(FORMULAS)}.")
        try:
            return evaluate(self.formula, self._arguments(formula, given))
        except ExpressionFault:
            raise
        except (ValueError, ArithmeticError) as error:
            raise ExpressionFault(f"{self.formula} has no value here: {error}.", "Give it numbers that it allows.") from None

    def settled(self, given: Given) -> object:
        return self.formula, tuple(sorted(self._arguments(FORMULAS[self.formula], given).items()))

    def _arguments(self, formula: Formula, given: Given) -> dict[str, Value | str]:
        named = dict(self.arguments)
        wanted = [symbol.name for symbol in formula.symbols]
        unknown = [name for name in named if name not in wanted]
        if unknown:
            raise ExpressionFault(f"{self.formula} does not take {', '.join(unknown)}.", f"It takes {', '.join(wanted)}.")
        absent = [name for name in wanted if name not in named and name not in given]
        if absent:
            raise ExpressionFault(f"{self.formula} needs {', '.join(absent)}.",
                                  f"Write {absent[0]}=... after it, or give {absent[0]} in lesson.yaml.")
        words = _parameters_of_words(formula)
        return {name: self._argument(name, named[name], given, takes_words=name in words) if name in named else given[name]
                for name in wanted}

    def _argument(self, name: str, written: str, given: Given, *, takes_words: bool) -> Value | str:
        if _NUMBER.fullmatch(written):
            return exact(written)
        if written in given:
            return given[written]
        if _FORMULA.fullmatch(written):
            return Call(written, ()).value(given)
        if takes_words:
            return written
        raise ExpressionFault(f"{name}={written}: nothing is given by the name {written}.",
                              f"Write a number, or one of {', '.join(given) or 'the names under given'}.")


def _parameters_of_words(formula: Formula) -> set[str]:
    """Arguments such as a dtype, which are words and not numbers."""
    parameters = inspect.signature(formula.function).parameters.values()
    return {parameter.name for parameter in parameters if "str" in str(parameter.annotation)}


@dataclass(frozen=True)
class Name:
    """A number that the lesson gives."""

    name: str

    def value(self, given: Given) -> Value:
        if self.name not in given:
            raise ExpressionFault(f"nothing is given by the name {self.name}.",
                                  f"Given are {', '.join(given) or 'no numbers'}.")
        return given[self.name]

    def settled(self, given: Given) -> object:
        return self.value(given)


@dataclass(frozen=True)
class Constant:
    """A number that stands in the expression itself."""

    number: int | Fraction

    def value(self, given: Given) -> Value:
        return self.number

    def settled(self, given: Given) -> object:
        return self.number


@dataclass(frozen=True)
class Expression:
    """Terms with an operator between each two."""

    text: str
    terms: tuple[Call | Name | Constant, ...]
    operators: tuple[str, ...]

    def evaluate(self, given: Given) -> Value:
        """The value at these numbers. Raises ExpressionFault where there is none."""
        values = [term.value(given) for term in self.terms]
        pending = list(self.operators)
        for level in ("*/", "+-"):
            position = 0
            while position < len(pending):
                if pending[position] in level:
                    left, right = values[position], values.pop(position + 1)
                    values[position] = _OPERATORS[pending.pop(position)](left, right)
                else:
                    position += 1
        return simplest(values[0])

    @property
    def formula(self) -> str | None:
        """The formula's name, where the expression is one formula and nothing else."""
        only = self.terms[0]
        return only.formula if len(self.terms) == 1 and isinstance(only, Call) else None

    def settled(self, given: Given) -> Hashable:
        """What is computed, whatever its numbers are called: `s / P` and `odd / third` are the same where those are equal.

        For an expression that has a value at these numbers.
        """
        return tuple(term.settled(given) for term in self.terms), self.operators

    @property
    def is_given(self) -> bool:
        """Whether it repeats numbers of the lesson and computes none."""
        return all(isinstance(term, (Name, Constant)) for term in self.terms)


def parse_expression(text: str) -> Expression:
    """Reads an expression. Raises ExpressionFault; names and formulas are looked up only when it is evaluated."""
    terms: list[Call | Name | Constant] = []
    operators: list[str] = []
    for word in text.split():
        if word in _OPERATORS and len(terms) == len(operators) + 1:
            operators.append(word)
        elif "=" in word and terms and isinstance(terms[-1], Call) and len(terms) == len(operators) + 1:
            terms[-1] = _with_argument(terms[-1], word)
        elif len(terms) == len(operators):
            terms.append(_term(word))
        else:
            raise ExpressionFault(f"{word!r} in {text!r} stands where + - * or / belongs.",
                                  "Put an operator between two values.")
    if len(terms) != len(operators) + 1:
        raise ExpressionFault(f"{text!r} ends too early." if text.strip() else "there is nothing to compute.",
                              "Name a formula with its numbers, as in data_parallel.volume P=8.")
    return Expression(text, tuple(terms), tuple(operators))


def formula_expression(formula: str, arguments: Mapping[str, Value | str]) -> Expression:
    """The expression for a formula and its arguments, as lesson.yaml writes them under `formula` and `given`."""
    call = Call(formula, tuple((name, str(value)) for name, value in arguments.items()))
    written = " ".join((formula, *(f"{name}={value}" for name, value in call.arguments)))
    return Expression(written, (call,), ())


def _term(word: str) -> Call | Name | Constant:
    if _NUMBER.fullmatch(word):
        return Constant(exact(word))
    if _NAME.fullmatch(word):
        return Name(word)
    if _FORMULA.fullmatch(word):
        return Call(word, ())
    raise ExpressionFault(f"{word!r} is neither a formula, a given nor a number.",
                          "Name a formula with its numbers, as in data_parallel.volume P=8.")


def _with_argument(call: Call, word: str) -> Call:
    name, _, value = word.partition("=")
    if not _NAME.fullmatch(name) or not value:
        raise ExpressionFault(f"{word!r} is not an argument.", "Write NAME=VALUE without blanks, as in P=8.")
    if name in dict(call.arguments):
        raise ExpressionFault(f"{call.formula} is given {name} twice.", "Keep one of the two.")
    return Call(call.formula, (*call.arguments, (name, value)))


def exact(written: str) -> int | Fraction:
    """A written number as what it is: 8 is an int, 1.1 is 11/10, and 11/10 is that too."""
    number = Fraction(written.replace("_", ""))
    return int(number) if number.denominator == 1 else number


def simplest(value: Value) -> Value:
    """A whole fraction as the int it is."""
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value


def _divided(left: Value, right: Value) -> Value:
    if right == 0:
        raise ExpressionFault("it divides by 0.", "Choose numbers for which the divisor is not 0.")
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    return Fraction(left) / Fraction(right)


def shown_number(value: Value, digits: int | None = None) -> str:
    """A number as text: thousands set off by a comma; `digits` decimals, or as many as it has, two at most if they never end.

    Rounds half up, as a reader does by hand. 48 -> "48", 3/2 -> "1.5", 128/3 -> "42.67", 7000000 -> "7,000,000".
    """
    if not -_LARGEST < value < _LARGEST:
        raise ExpressionFault("the value is endless, or too long to show.", "Choose smaller numbers.")
    with localcontext() as context:
        context.prec = 70
        fraction = Fraction(value) if not isinstance(value, float) else Fraction(str(value))
        decimal = Decimal(fraction.numerator) / Decimal(fraction.denominator)
        if digits is None:
            digits = _own_digits(fraction)
        return f"{decimal.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP):,f}"


def _own_digits(fraction: Fraction) -> int:
    """The decimals it takes to write the fraction exactly, if four are enough; two otherwise."""
    return next((digits for digits in range(5) if (fraction * 10**digits).denominator == 1), 2)


def in_words(value: Value) -> str:
    """A small whole number as a word. Raises ExpressionFault for what has no short one."""
    if value in range(len(_WORDS)):
        return _WORDS[int(value)]
    raise ExpressionFault(f"{shown_number(value)} has no word here.", f"Words go from 0 to {len(_WORDS) - 1}; drop `words`.")
