"""The smallest loss there is: one weight w = 1, four tokens x = -1, 2, -3, 4 whose targets are 0, and (w x)^2 for each.

The strategy `loss_reduction` trains it for real; here is what its gradients must be.
"""

from __future__ import annotations

from fractions import Fraction

from app.theory.checks import whole
from kernels.spec import LOSS_TOKENS


def summed_gradient(first_token: int, last_token: int) -> int:
    """Gradient, at w = 1, of the loss summed over some of the tokens -1, 2, -3, 4, numbered from 1.

        d/dw sum (w x)^2 = sum 2 x^2

    All four give 60; the first two 10, the last two 50. Raises ValueError unless 1 <= first_token <= last_token <= 4.
    """
    first = whole("first_token", first_token, 1, len(LOSS_TOKENS))
    last = whole("last_token", last_token, first, len(LOSS_TOKENS))
    return sum(2 * x * x for x in LOSS_TOKENS[first - 1 : last])


def mean_gradient(first_token: int, last_token: int) -> Fraction:
    """The same for the loss averaged over these tokens: the summed gradient over their number. All four give 15."""
    summed = summed_gradient(first_token, last_token)
    return Fraction(summed, last_token - first_token + 1)


def replica_tokens(replica: int, d: int) -> tuple[int, int]:
    """Numbers of the first and the last token of a replica (from 0) when d replicas share the four equally."""
    share, rest = divmod(len(LOSS_TOKENS), whole("d", d, 1, len(LOSS_TOKENS)))
    if rest:
        raise ValueError(f"d = {d}: must divide {len(LOSS_TOKENS)}, the number of tokens")
    return replica * share + 1, (replica + 1) * share
