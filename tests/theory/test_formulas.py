"""The index: every card is complete, and evaluating by name refuses what does not fit."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from fractions import Fraction

import pytest

from app.course.math import mathml
from app.theory import FORMULAS, evaluate
from app.theory.cards.symbols import SYMBOLS
from app.theory.formula import SCOPES, Formula, plain_text, read_argument

ALL = pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS.keys())

FLAGSHIP = {
    "collectives.ring_factor": ({"P": 4}, Fraction(3, 2)),
    "collectives.ring_all_reduce": ({"s": 32, "P": 4}, 48),
    "data_parallel.params": ({"L": 2, "H": 4}, 32),
    "data_parallel.volume": ({"P": 8, "L": 2, "H": 4}, 56),
    "data_parallel.limit": ({"L": 2, "H": 4}, 64),
    "tensor_parallel.taught_volume": ({"P": 8, "L": 2, "H": 4, "T": 1}, 28),
    "tensor_parallel.exact_volume": ({"P": 8, "L": 2, "H": 4, "T": 1}, 24),
    "tensor_parallel.boundary_volume": ({"P": 4, "H": 4, "T": 1}, 6),
    "tensor_parallel.active_gpus": ({"P": 8, "H": 4}, 4),
    "tensor_parallel.break_even_tokens": ({"H": 4}, 2),
    "pipeline_parallel.taught_volume": ({"L": 8, "H": 4, "T": 1, "m": 1}, 56),
    "pipeline_parallel.exact_volume": ({"P": 4, "L": 8, "H": 4, "T": 1, "m": 1}, 24),
    "pipeline_parallel.stages": ({"P": 4, "L": 2}, 2),
    "pipeline_parallel.idle_gpus": ({"P": 8, "L": 2}, 6),
    "pipeline_parallel.busiest_gpu_volume": ({"P": 4, "L": 2, "H": 4, "T": 1, "m": 1}, 4),
    "units.bytes": ({"elements": 48, "dtype": "fp32"}, 192),
}


@pytest.mark.parametrize(("name", "case"), FLAGSHIP.items(), ids=FLAGSHIP.keys())
def test_the_first_lesson_finds_its_numbers_by_name(name: str, case: tuple[dict[str, int | str], Fraction | int]) -> None:
    given, expected = case
    assert evaluate(name, given) == expected


@ALL
def test_a_card_names_the_function_it_describes(formula: Formula) -> None:
    module = formula.function.__module__.removeprefix("app.theory.")
    assert formula.name == f"{module}.{formula.function.__name__}"
    assert [symbol.name for symbol in formula.symbols] == list(inspect.signature(formula.function).parameters)


@ALL
def test_a_card_says_what_it_assumes_what_breaks_and_where_it_comes_from(formula: Formula) -> None:
    assert formula.title
    assert formula.scope in SCOPES
    assert formula.assumptions
    assert formula.breaks
    assert formula.sources
    for sentence in (*formula.assumptions, formula.breaks):
        assert plain_text(sentence)[-1] == ".", sentence
    for source in formula.sources:
        assert source.url.startswith("https://"), source


@ALL
def test_latex_of_a_card_converts_to_mathml(formula: Formula) -> None:
    assert "<math" in mathml(formula.latex, display=True)
    for symbol in formula.symbols:
        assert "<math" in mathml(symbol.latex, display=False)


@ALL
def test_symbols_in_the_sentences_of_a_card_are_set_as_formulas(formula: Formula) -> None:
    """All but A, which is a word too: no other letter stands alone outside of dollar signs."""
    for sentence in (*formula.assumptions, formula.breaks):
        prose, *rest = re.split(r"\$([^$]*)\$", sentence)
        assert all("<math" in mathml(latex, display=False) for latex in rest[::2])
        words = " ".join((prose, *rest[1::2]))
        assert re.findall(r"(?<![\w’.-])(?:[B-Zb-z]|P′|alpha|log2)(?![\w’-])", words) == [], sentence
        assert not re.search(r"[$\\]", plain_text(sentence))


def test_a_sentence_reads_as_before_where_latex_is_not_set() -> None:
    sentence = r"$\alpha + n / B$ or $\log_2 P$, only $\min(P, H)$ of $2 (P - 1) / P$."
    assert plain_text(sentence) == "alpha + n / B or log2(P), only min(P, H) of 2 (P - 1) / P."


@ALL
def test_a_function_documents_itself(formula: Formula) -> None:
    assert inspect.getdoc(formula.function)


def test_titles_are_told_apart() -> None:
    titles = [formula.title for formula in FORMULAS.values()]
    assert len(set(titles)) == len(titles)


def test_no_two_symbols_of_the_course_are_written_the_same_way() -> None:
    written = [symbol.latex for symbol in SYMBOLS.values()]
    assert len(set(written)) == len(written)


def test_every_symbol_of_the_course_is_used() -> None:
    used = {symbol.name for formula in FORMULAS.values() for symbol in formula.symbols}
    assert used == set(SYMBOLS)


@pytest.mark.parametrize(("name", "given", "message"), [
    ("data_parallel.volume", {"P": 0, "L": 2, "H": 4}, "P = 0: must be a whole number, 1 or more"),
    ("data_parallel.volume", {"P": "4", "L": 2, "H": 4}, "P = 4: must be a whole number"),
    ("data_parallel.volume", {"P": True, "L": 2, "H": 4}, "P = True: must be a whole number"),
    ("data_parallel.volume", {"P": 4, "L": 2}, r"H is missing \(hidden width\); data_parallel.volume takes P, L, H"),
    ("data_parallel.volume", {"P": 4, "L": 2, "H": 4, "T": 1}, "T = 1: not an argument; data_parallel.volume takes P, L, H"),
    ("data_parallel.size", {}, "formula = data_parallel.size: unknown; choose one of .*data_parallel.volume"),
    ("tensor_parallel.data_volume", {}, "formula = tensor_parallel.data_volume: unknown"),
    ("units.bytes", {"elements": 4, "dtype": "int3"}, "dtype = int3: must be one of fp64, fp32"),
    ("units.bytes", {"elements": -1, "dtype": "fp32"}, "elements = -1: must be a number, 0 or more"),
    ("tensor_parallel.megatron_volume", {"P": 4, "L": 3, "H": 4, "T": 1}, "L = 3: .* must be even"),
    ("tensor_parallel.all_reduces_per_layer", {"P": 4}, "takes no arguments"),
    ("latency.ring_all_reduce_seconds", {"P": 4, "n": 8, "alpha": 0, "B": 1}, "alpha = 0: must be a number above 0"),
    ("latency.nccl_ring_microseconds",
     {"P": 8, "nodes": 3, "base": 1, "hardware": 1, "overhead": 1, "network": 1}, "P = 8: must be a multiple of nodes = 3"),
    ("zero.hybrid_cross_host_volume", {"params": 8, "P": 16, "F": 3}, "P = 16: must be a multiple of F = 3"),
    ("zero.resident_bytes",
     {"params": 8, "P": 4, "zero_stage": 4, "weight_bytes": 2, "gradient_bytes": 2, "optimizer_bytes": 12},
     "zero_stage = 4: must be a whole number, from 0 to 3"),
    ("tensor_parallel.columns_per_gpu", {"H": 4, "t": 3}, "H = 4: must be a multiple of t = 3"),
    ("batch.num_micro_batches", {"batch": 256, "b": 1, "d": 7}, r"batch = 256: must be a multiple of b \* d = 7"),
    ("batch.replicas", {"P": 64, "t": 8, "c": 1, "p": 3}, r"P = 64: must be a multiple of t \* c \* p = 24"),
    ("flops.utilisation", {"achieved": 400, "peak": 312}, "achieved = 400: must be a whole number, from 1 to 312"),
])
def test_what_does_not_fit_is_refused_by_name_value_and_range(name: str, given: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(name, given)


@pytest.mark.parametrize(("text", "value"), [("4", 4), ("7_000_000_000", 7 * 10**9), ("3/2", Fraction(3, 2)), ("5e-6", 5e-6),
                                             ("bf16", "bf16"), ("1/0", "1/0")])
def test_a_typed_argument_is_read_as_number_or_word(text: str, value: object) -> None:
    assert read_argument(text) == value


def test_theory_stays_pure() -> None:
    """Imported alone it brings neither torch nor a database nor a web framework."""
    script = "import sys, app.theory.published; print(sorted({'torch', 'numpy', 'sqlalchemy', 'fastapi'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
