"""Bytes per number and the two meanings of "giga", kept apart."""

from __future__ import annotations

from fractions import Fraction

from app.theory.checks import whole

BYTES_PER_ELEMENT = {"fp64": 8, "fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}


def bytes_per_element(dtype: str) -> int:
    """Bytes of one number. Raises ValueError for a dtype that is not in BYTES_PER_ELEMENT."""
    if dtype not in BYTES_PER_ELEMENT:
        raise ValueError(f"dtype = {dtype}: must be one of {', '.join(BYTES_PER_ELEMENT)}")
    return BYTES_PER_ELEMENT[dtype]


def bytes(elements: Fraction | int, dtype: str) -> Fraction | int:
    """Bytes of `elements` numbers.

        bytes = elements * w          w = bytes of one number at this dtype

    Exact. `elements` may be a fraction: a mean over GPUs often is one.
    Raises ValueError if elements < 0 or dtype is unknown.
    """
    if isinstance(elements, bool) or not isinstance(elements, (int, Fraction)) or elements < 0:
        raise ValueError(f"elements = {elements}: must be a number, 0 or more")
    return elements * bytes_per_element(dtype)


def gigabytes(byte_count: int) -> Fraction:
    """GB, the decimal unit of network and disk vendors: byte_count / 10^9. Raises ValueError if byte_count < 0."""
    return Fraction(whole("byte_count", byte_count, 0), 10**9)


def gibibytes(byte_count: int) -> Fraction:
    """GiB, the binary unit that nvidia-smi reports in: byte_count / 2^30. Raises ValueError if byte_count < 0."""
    return Fraction(whole("byte_count", byte_count, 0), 2**30)
