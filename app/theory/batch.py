"""How micro-batches, accumulation and replicas make up one optimizer step. Batches count sequences."""

from __future__ import annotations

from fractions import Fraction

from app.theory.checks import quotient, whole


def global_batch(b: int, A: int, d: int) -> int:
    """Sequences of one optimizer step: b A d. Tensor, context and pipeline ranks do not multiply it."""
    return whole("b", b) * whole("A", A) * whole("d", d)


def replicas(P: int, t: int, c: int, p: int) -> int:
    """Copies of the model that see different data: P / (t c p). Raises ValueError if t c p does not divide P."""
    return quotient("t * c * p", whole("t", t) * whole("c", c) * whole("p", p), "P", whole("P", P))


def global_batch_of_world(P: int, t: int, c: int, p: int, b: int, A: int) -> int:
    """Sequences of one optimizer step on P GPUs: b A P / (t c p)."""
    return global_batch(b, A, replicas(P, t, c, p))


def num_micro_batches(batch: int, b: int, d: int) -> int:
    """Micro-batches each replica works through in one optimizer step: batch / (b d).

    The same number is called accumulation steps outside a pipeline. Raises ValueError if b d does not divide batch.
    Source: Narayanan et al. 2021, arXiv 2104.04473, section 3.1.
    """
    return quotient("b * d", whole("b", b) * whole("d", d), "batch", whole("batch", batch))


def micro_batch_weight(A: int, d: int) -> Fraction:
    """Weight of one micro-batch's mean gradient in the step's mean: 1 / (A d). Right only for equal token counts."""
    return Fraction(1, whole("A", A) * whole("d", d))


def tokens_per_step(batch: int, sequence: int) -> int:
    """Tokens of one optimizer step: batch * sequence."""
    return whole("batch", batch) * whole("sequence", sequence)


def sequences_of_tokens(tokens: int, sequence: int) -> Fraction:
    """Sequences that hold so many tokens: tokens / sequence, which need not be whole."""
    return Fraction(whole("tokens", tokens), whole("sequence", sequence))


def rampup_increments(start: int, batch: int, increment: int) -> int:
    """Times the batch grows on its way from start to batch: (batch - start) / increment."""
    growth = whole("batch", batch, whole("start", start)) - start
    return quotient("increment", whole("increment", increment), "batch - start", growth)


def rampup_samples_per_increment(samples: int, increments: int) -> int:
    """Samples seen at each batch size of a ramp over `samples` samples: floor(samples / increments)."""
    return whole("samples", samples) // whole("increments", increments)


def rampup_steps(samples: int, batch: int) -> int:
    """Optimizer steps that `samples` samples last at one batch size: floor(samples / batch)."""
    return whole("samples", samples) // whole("batch", batch)
