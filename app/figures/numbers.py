"""Numbers as a reader sees them: rounded once, here, with a comma for thousands."""

from __future__ import annotations

from fractions import Fraction

Number = Fraction | int
DECIMALS_END_AT = 10_000
NUMBER_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def tenths(value: Number) -> str:
    """One decimal, always, up to 10,000: 48.0, 42.7, 129,024."""
    return f"{float(value):,.0f}" if value >= DECIMALS_END_AT else f"{float(value):,.1f}"


def plain(value: Number) -> str:
    """No decimal where none is needed: 48, 31.5, 42.7, 129,024."""
    return f"{int(value):,}" if value == int(value) else tenths(value)


def word(count: int) -> str:
    """A small whole number as prose spells it: three, but 12."""
    return NUMBER_WORDS[count] if 0 <= count < len(NUMBER_WORDS) else f"{count:,}"


def times(ratio: Fraction) -> str:
    """How many times, for a ratio above 1: twice, three times, 1.5 times, about 2.3 times."""
    if ratio == 2:
        return "twice"
    if ratio.denominator == 1:
        return f"{word(ratio.numerator)} times"
    about = "" if (ratio * 10).denominator == 1 else "about "
    digits = 1 if ratio >= Fraction(21, 20) else 2
    return f"{about}{f'{float(ratio):,.{digits}f}'.removesuffix('.0')} times"


def counted(count: int, noun: str, nouns: str = "") -> str:
    """A count and its noun: 1 GPU, 4 GPUs; boundary becomes boundaries."""
    plural = nouns or (f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s")
    return f"{count:,} {noun if count == 1 else plural}"
