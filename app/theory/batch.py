"""How micro-batches, accumulation and replicas make up one optimizer step. Batches count sequences."""

from __future__ import annotations

from fractions import Fraction

from app.theory.checks import finite, quotient, whole
from app.theory.formula import Number


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


def mean_of_means(first_mean: Number, second_mean: Number) -> Number:
    """Loss of two micro-batches if each counts the same, however many tokens it has: (first + second) / 2.

    What accumulation computes when every micro-batch's loss is a mean and the means are averaged.
    """
    return _share(finite("first_mean", first_mean) + finite("second_mean", second_mean), 2)


def token_weighted_mean(first_mean: Number, second_mean: Number, first_tokens: int, second_tokens: int) -> Number:
    """Loss of two micro-batches if each token counts the same.

        mean = (first_tokens * first + second_tokens * second) / (first_tokens + second_tokens)

    What one process computes on all tokens at once. Equal to `mean_of_means` where both have equally many tokens.
    """
    first, second = whole("first_tokens", first_tokens), whole("second_tokens", second_tokens)
    return _share(first * finite("first_mean", first_mean) + second * finite("second_mean", second_mean), first + second)


def token_weight_ratio(first_tokens: int, second_tokens: int) -> Fraction:
    """How many times as much a token of the first micro-batch weighs as one of the second, in a mean of means.

        ratio = second_tokens / first_tokens

    10 tokens against 100: each of the 10 weighs as much as 10 of the others.
    """
    return Fraction(whole("second_tokens", second_tokens), whole("first_tokens", first_tokens))


def averaged_gradient(gradient: Number, d: int) -> Number:
    """What DDP leaves in .grad where each of d replicas takes the *sum* of its own losses: gradient / d.

    `gradient` is that of the summed loss in one process with the whole batch. DDP averages over replicas, so that the mean
    loss comes out right and the summed one d times too small: 60 becomes 30 on two.
    """
    return _share(finite("gradient", gradient), whole("d", d))


def _share(value: Number, n: int) -> Number:
    """value / n, exact unless the value was a float."""
    return value / n if isinstance(value, float) else Fraction(value) / n


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
