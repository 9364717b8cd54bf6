"""What a figure may be asked: fields with their limits, and a submitted form read into Inputs or messages by field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Value = int | str
Query = Mapping[str, str] | Sequence[tuple[str, str]]

WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,9}")
SLIDER = re.compile(r"(?P<field>.+)\.from(?P<start>-?[0-9]{1,9})")
LONGEST_ECHO = 24


@dataclass(frozen=True)
class Field:
    """A whole number that a slider and a number field set together. `name` is its symbol in the lessons, unless that is a
    letter which no address could hold: then `symbol` is what the page shows."""

    name: str
    label: str
    unit: str
    minimum: int
    maximum: int
    default: int
    step: int = 1
    symbol: str = ""

    @property
    def allowed(self) -> str:
        """What a visitor may give, in words."""
        steps = "" if self.step == 1 else f", in steps of {self.step}"
        return f"a whole number from {self.minimum} to {self.maximum}{steps}"

    def read(self, text: str) -> int:
        """The number in `text`. Raises ValueError with a message for the visitor."""
        number = int(text) if WHOLE_NUMBER.fullmatch(text) else None
        if number is None or not self._fits(number):
            raise ValueError(_refusal(self.name, self.allowed, text))
        return number

    def _fits(self, number: int) -> bool:
        return self.minimum <= number <= self.maximum and (number - self.minimum) % self.step == 0


@dataclass(frozen=True)
class Option:
    """One of a choice's words, and what the page calls it."""

    value: str
    label: str


@dataclass(frozen=True)
class Choice:
    """One of a few words; the first is the default. `label` introduces the options."""

    name: str
    label: str
    options: tuple[Option, ...]

    @property
    def default(self) -> str:
        return self.options[0].value

    @property
    def allowed(self) -> str:
        """What a visitor may give, in words."""
        return f"one of {', '.join(option.value for option in self.options)}"

    def read(self, text: str) -> str:
        """The word in `text`. Raises ValueError with a message for the visitor."""
        if text not in {option.value for option in self.options}:
            raise ValueError(_refusal(self.name, self.allowed, text))
        return text


Control = Field | Choice


@dataclass(frozen=True)
class Inputs:
    """A value for every field of a figure, in the figure's order; hashable, so that answers can be kept."""

    values: tuple[tuple[str, Value], ...]

    def number(self, name: str) -> int:
        """The value of a Field."""
        value = dict(self.values)[name]
        assert isinstance(value, int)
        return value

    def choice(self, name: str) -> str:
        """The value of a Choice."""
        value = dict(self.values)[name]
        assert isinstance(value, str)
        return value


@dataclass(frozen=True)
class Reading:
    """A form, read: the good values, defaults where nothing was said or the value is bad, and messages by field.

    A key that no field has stands in `errors` under its own name. `kept` are the fields in error of which the form says what
    the page shows.
    """

    inputs: Inputs
    errors: Mapping[str, str]
    kept: frozenset[str] = frozenset()


def parse(fields: Sequence[Control], raw: Query, defaults: Mapping[str, Value] | None = None) -> Reading:
    """Reads a query whose keys are plain field names.

    An absent field takes its default; a present one that cannot be used is an error. A slider travels under a name that
    says where it started (`P.from4=9`), so that without JavaScript the server knows which of the pair was moved: the number
    field wins if it was changed, the slider otherwise. A bad number keeps the value the slider started from.
    """
    start = {control.name: control.default for control in fields} | dict(defaults or {})
    given, errors = _single_values(_pairs(raw))
    sliders = _take_sliders(given, start)
    values: list[tuple[str, Value]] = []
    for control in fields:
        try:
            value = _read(control, given.pop(control.name, None), sliders.get(control.name), start[control.name])
        except ValueError as refused:
            errors.setdefault(control.name, str(refused))
            value = _kept(control, sliders.get(control.name), start[control.name])
        values.append((control.name, value))
    known = ", ".join(control.name for control in fields)
    errors |= {echo(key): f"There is no {echo(key)} here; the names are {known}." for key in given}
    return Reading(Inputs(tuple(values)), errors, frozenset(errors) & frozenset(sliders))


@dataclass(frozen=True)
class _Slider:
    """A slider as submitted: where the page drew it, and where it stands now."""

    start: str
    position: str


def _pairs(raw: Query) -> Iterable[tuple[str, str]]:
    return raw.items() if isinstance(raw, Mapping) else raw


def _single_values(pairs: Iterable[tuple[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """One value a key; a key given twice with two values is an error, because either could be meant."""
    given: dict[str, str] = {}
    errors: dict[str, str] = {}
    for key, text in pairs:
        value = text.strip()
        if given.setdefault(key, value) != value:
            errors[echo(key)] = f"{echo(key)} was given twice, as {echo(given[key])} and as {echo(value)}; give it once."
    return given, errors


def _take_sliders(given: dict[str, str], known: Mapping[str, Value]) -> dict[str, _Slider]:
    sliders: dict[str, _Slider] = {}
    for key in list(given):
        match = SLIDER.fullmatch(key)
        if match and match["field"] in known:
            sliders[match["field"]] = _Slider(match["start"], given.pop(key))
    return sliders


def _read(control: Control, text: str | None, slider: _Slider | None, default: Value) -> Value:
    if slider and text in (None, slider.start):
        text = slider.position
    return default if text is None else control.read(text)


def _kept(control: Control, slider: _Slider | None, default: Value) -> Value:
    """What the page showed before, as far as the form tells."""
    if slider is None:
        return default
    try:
        return control.read(slider.start)
    except ValueError:
        return default


def _refusal(name: str, allowed: str, text: str) -> str:
    return f"{name} must be {allowed}, not {echo(text)}." if text else f"{name} is empty; it must be {allowed}."


def echo(text: str, longest: int = LONGEST_ECHO) -> str:
    """What was sent, short and printable, to stand in a message."""
    shown = "".join(character if character.isprintable() else "�" for character in text[: longest + 1])
    return shown if len(text) <= longest else f"{shown[:longest]}…"
