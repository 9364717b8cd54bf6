"""Queries become inputs or messages: an absent value is the default, a present bad one is never passed over."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.figures.inputs import Choice, Field, Option, parse

FIELDS = (Field("P", "GPUs", "GPUs", 1, 64, 4), Field("A", "steps", "steps", 2, 10, 4, step=2),
          Choice("unit", "In", (Option("elements", "elements"), Option("fp32", "bytes"))))


def test_an_absent_field_takes_its_default() -> None:
    reading = parse(FIELDS, {})
    assert dict(reading.inputs.values) == {"P": 4, "A": 4, "unit": "elements"}
    assert not reading.errors


def test_a_lesson_may_start_elsewhere() -> None:
    assert parse(FIELDS, {}, {"P": 8}).inputs.number("P") == 8


@pytest.mark.parametrize("text", ["abc", "4.5", "0", "65", "-3", "1e1", "９", "0x8", "1" * 5000, "4;5", "\0", "💥"])
def test_a_number_that_cannot_be_used_is_refused_with_what_is_allowed(text: str) -> None:
    errors = parse(FIELDS, {"P": text}).errors
    assert list(errors) == ["P"]
    assert "P must be a whole number from 1 to 64, not " in errors["P"]
    assert len(errors["P"]) < 100


def test_an_empty_field_is_refused_and_not_taken_for_the_default() -> None:
    assert parse(FIELDS, {"P": " "}).errors == {"P": "P is empty; it must be a whole number from 1 to 64."}


@pytest.mark.parametrize(("text", "value"), [("8", 8), ("+8", 8), ("008", 8), (" 8 ", 8), ("64", 64), ("1", 1)])
def test_a_whole_number_is_read_as_people_write_it(text: str, value: int) -> None:
    assert parse(FIELDS, {"P": text}).inputs.number("P") == value


def test_a_step_is_kept() -> None:
    assert parse(FIELDS, {"A": "5"}).errors == {"A": "A must be a whole number from 2 to 10, in steps of 2, not 5."}


def test_a_word_that_is_no_option_is_refused_with_the_options() -> None:
    assert parse(FIELDS, {"unit": "bits"}).errors == {"unit": "unit must be one of elements, fp32, not bits."}


def test_a_key_that_no_field_has_is_refused_with_the_names() -> None:
    assert parse(FIELDS, {"p": "8"}).errors == {"p": "There is no p here; the names are P, A, unit."}


def test_a_key_given_twice_with_two_values_is_refused() -> None:
    assert "given twice, as 4 and as 8" in parse(FIELDS, [("P", "4"), ("P", "8")]).errors["P"]
    assert not parse(FIELDS, [("P", "8"), ("P", "8")]).errors


@pytest.mark.parametrize(("number", "slider", "value"), [("4", "9", 9), ("9", "4", 9), ("4", "4", 4), ("9", "7", 9)])
def test_of_a_slider_and_its_number_field_the_one_that_moved_counts_and_the_number_before_the_slider(
    number: str, slider: str, value: int
) -> None:
    reading = parse(FIELDS, {"P": number, "P.from4": slider})
    assert (reading.inputs.number("P"), dict(reading.errors)) == (value, {})


def test_a_slider_alone_counts() -> None:
    assert parse(FIELDS, {"P.from4": "9"}).inputs.number("P") == 9


def test_a_bad_number_keeps_the_value_that_its_slider_started_from() -> None:
    reading = parse(FIELDS, {"P": "99", "P.from8": "8"})
    assert list(reading.errors) == ["P"]
    assert reading.inputs.number("P") == 8


def test_a_slider_that_started_nowhere_possible_keeps_the_default() -> None:
    assert parse(FIELDS, {"P": "99", "P.from900": "8"}).inputs.number("P") == 4


@given(st.lists(st.tuples(st.sampled_from(["P", "A", "unit", "P.from4", "P.from-1", "unit.from1", ""]) | st.text(), st.text())))
def test_whatever_is_sent_inputs_stay_within_their_ranges(pairs: list[tuple[str, str]]) -> None:
    reading = parse(FIELDS, pairs)
    assert 1 <= reading.inputs.number("P") <= 64
    assert reading.inputs.number("A") in range(2, 11, 2)
    assert reading.inputs.choice("unit") in ("elements", "fp32")
    assert all(message.isprintable() for message in reading.errors.values())
