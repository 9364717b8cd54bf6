"""Arguments checked once, at the door of each formula: a ValueError names the argument, its value and what is allowed."""

from __future__ import annotations

from fractions import Fraction


def whole(name: str, value: object, minimum: int = 1, maximum: int | None = None) -> int:
    """`value` as an int. Raises ValueError unless it is a whole number from `minimum` to `maximum`."""
    number = _as_int(value)
    if number is None or number < minimum or (maximum is not None and number > maximum):
        limit = f"{minimum} or more" if maximum is None else f"from {minimum} to {maximum}"
        raise ValueError(f"{name} = {value}: must be a whole number, {limit}")
    return number


def positive(name: str, value: object) -> Fraction | int | float:
    """`value` as given. Raises ValueError unless it is a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)) or not 0 < value < float("inf"):
        raise ValueError(f"{name} = {value}: must be a number above 0")
    return value


def finite(name: str, value: object) -> Fraction | int | float:
    """`value` as given. Raises ValueError unless it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Fraction)) or not -float("inf") < value < float("inf"):
        raise ValueError(f"{name} = {value}: must be a number")
    return value


def quotient(divisor_name: str, divisor: int, name: str, value: int) -> int:
    """value / divisor. Raises ValueError where that is not a whole number."""
    if value % divisor:
        raise ValueError(f"{name} = {value}: must be a multiple of {divisor_name} = {divisor}")
    return value // divisor


def _as_int(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    return None
