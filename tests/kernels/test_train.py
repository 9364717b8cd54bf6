"""A rank by hand: what it refuses, and what rank 0 makes of every rank's difference of weights."""

from __future__ import annotations

import math

import pytest

from kernels.spec import Experiment
from kernels.strategies.base import largest
from kernels.train import Variant, _worst, main, variants_of

PLAIN = variants_of(Experiment("data_parallel"), "counting")
COMPRESSED = variants_of(Experiment("data_parallel", options={"comm_dtype": "bf16"}), "counting")
NAN = float("nan")
MAY_BE = {"fp32": 1e-5, "fp64": 1e-12, "bf16": 1e-4}


def worst(variants: tuple[Variant, ...], differences: list[list[float]]) -> tuple[float, float]:
    return _worst(variants, differences, [MAY_BE[variant.sends_in] for variant in variants])


@pytest.mark.parametrize("values", [[NAN, 0.0], [0.0, NAN], [0.0, NAN, 1.0]])
def test_a_nan_is_the_largest_wherever_it_stands(values: list[float]) -> None:
    assert math.isnan(largest(values))


def test_of_numbers_the_largest_is_the_largest_and_of_none_it_is_zero() -> None:
    assert largest([1.0, 3.0, 2.0]) == 3.0
    assert largest([]) == 0.0


@pytest.mark.parametrize(("variants", "differences", "told"), [
    (PLAIN, [[1e-7, 1e-15], [2e-7, 3e-15]], (3e-15, "fp64")),  # both within what they may be: the wider one says more
    (PLAIN, [[1e-7, 1e-15], [1e-3, 1e-15]], (1e-3, "fp32")),
    (PLAIN, [[1e-7, 1e-15], [1e-7, 1e-3]], (1e-3, "fp64")),
    (COMPRESSED, [[1e-5, 1e-7], [2e-5, 1e-7]], (2e-5, "bf16")),  # the compressed run is what it is about
    (COMPRESSED, [[1e-5, 1e-7], [1e-5, 1e-3]], (1e-3, "fp32")),
])
def test_the_difference_told_is_the_one_that_matters(
        variants: tuple[Variant, ...], differences: list[list[float]], told: tuple[float, str]) -> None:
    assert worst(variants, differences) == (told[0], MAY_BE[told[1]])


@pytest.mark.parametrize("differences", [[[0.0, 0.0], [0.0, NAN]], [[0.0, 0.0], [NAN, 0.0]]])
def test_a_nan_on_the_last_rank_is_not_passed_over(differences: list[list[float]]) -> None:
    assert math.isnan(worst(PLAIN, differences)[0])


@pytest.mark.parametrize(("words", "said"), [
    (("--strategy", "data_parallel", "-P", "9"), "P = 9: must be a whole number from 1 to 8"),
    (("--strategy", "tensor_parallel", "-P", "3"), "P = 3: min(P, H) = 3 does not divide H = 4"),
    (("--strategy", "data_parallel", "-P", "4"), "torchrun --nproc-per-node 4 -m kernels.train"),
    (("--spec", "{"), "--spec is no RunSpec as JSON"),
    (("--spec", '{"P": 2}'), "'experiments'"),
    (("--spec", '{"P": 2, "experiments": [], "colour": "red"}'), "colour"),
    (("--spec", "{}", "--backend", "gloo"), "--backend goes with --strategy"),
    ((), "give either --strategy or --spec"),
])
def test_what_a_rank_cannot_run_is_refused_in_words(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SystemExit) as exited:
        main(words)
    assert exited.value.code == 2
    assert said in capsys.readouterr().err
