"""Kernel functions quoted by name."""

from __future__ import annotations

import inspect
import sys

import pytest

from app.course.code import kernel_quote
from kernels import spec


def test_a_function_is_quoted_word_for_word_with_its_place() -> None:
    quote = kernel_quote("spec.experiment.pipeline_stages")
    assert quote is not None
    assert quote.text == inspect.getsource(spec.pipeline_stages).rstrip()
    assert (quote.file, quote.line) == ("kernels/spec/experiment.py", inspect.getsourcelines(spec.pipeline_stages)[1])


def test_a_method_is_quoted_without_its_indentation() -> None:
    quote = kernel_quote("spec.report.ExperimentReport.payload_bytes_by_rank")
    assert quote is not None
    assert quote.text.startswith("@property\ndef payload_bytes_by_rank")


NAMES_OF_NOTHING = [
    "", "spec", "spec.experiment.nothing", "spec.experiment.Range.nothing", "nothing.at_all", "..spec.P", "../secrets.x",
    "spec.experiment.P", "a b",
]


@pytest.mark.parametrize("name", NAMES_OF_NOTHING)
def test_what_is_not_there_is_none(name: str) -> None:
    assert kernel_quote(name) is None


def test_quoting_a_kernel_does_not_import_it() -> None:
    before = set(sys.modules)
    kernel_quote("train.run_rank")
    assert not {name for name in set(sys.modules) - before if name.startswith(("kernels", "torch"))}
