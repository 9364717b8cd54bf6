"""Floating-point work against what the hardware could do."""

from __future__ import annotations

from fractions import Fraction

from app.theory.checks import whole


def utilisation(achieved: int, peak: int) -> Fraction:
    """Share of the peak rate that a job reaches: achieved / peak, both in FLOP per second (or both in TFLOPS).

    Whether recomputed work counts (HFU) or not (MFU) is decided by who counted `achieved`.
    Raises ValueError if either is below 1, or achieved is above peak.
    """
    return Fraction(whole("achieved", achieved, 1, whole("peak", peak)), peak)
