"""YAML files: positions, kinds and traps."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.course.yaml_file import YamlFile
from app.errors import Fault


def test_values_know_their_line_and_key() -> None:
    faults: list[Fault] = []
    fields = YamlFile("f.yaml", faults).read("a: 1\nb:\n  - c: x\n  - c: |\n      long\n      text\n")
    assert fields is not None
    entries = fields.mappings("b")
    assert fields.number("a") == 1
    assert [entry.item.line for entry in entries] == [3, 4]
    text = entries[1].text("c")
    assert text is not None
    assert (text.key, text.line, text.text_line, text.value) == ("b[1].c", 4, 5, "long\ntext\n")
    assert faults == []


@pytest.mark.parametrize(
    ("written", "number"), [("7_000_000_000", 7 * 10**9), ("0.01", Fraction(1, 100)), ("-3", -3), ("1.5e+3", 1500)]
)
def test_numbers_are_exact(written: str, number: int | Fraction) -> None:
    fields = YamlFile("f.yaml", []).read(f"n: {written}")
    assert fields is not None
    assert fields.number("n") == number


TRAPS = [
    "7e9", "1E5", "no", "Yes", "on", "16:9", "012", "0x10", "0b1", "0o7", ".inf", ".nan", "2009-02-01", "!!binary aa",
]


@pytest.mark.parametrize("written", TRAPS)
def test_what_yaml_would_misread_is_a_fault(written: str) -> None:
    faults: list[Fault] = []
    fields = YamlFile("f.yaml", faults).read(f"n: {written}")
    assert fields is not None
    fields.number("n")
    assert faults
    assert {(fault.file, fault.line, fault.key) for fault in faults} == {("f.yaml", 1, "n")}
    assert all(fault.remedy for fault in faults)


def test_an_alias_that_contains_itself_is_a_fault() -> None:
    faults: list[Fault] = []
    YamlFile("f.yaml", faults).read("a: &x\n  b: *x\n")
    assert "contains itself" in faults[0].message


def test_brackets_without_end_are_a_fault() -> None:
    faults: list[Fault] = []
    YamlFile("f.yaml", faults).read("a: " + "[" * 5000)
    assert faults


@given(st.text(alphabet=st.sampled_from("abc:-[]{}&*!|>'\"%@\n 12\t#,?\x00\x07é"), max_size=40))
def test_no_file_raises(text: str) -> None:
    faults: list[Fault] = []
    fields = YamlFile("f.yaml", faults).read(text)
    assert fields is not None or faults
