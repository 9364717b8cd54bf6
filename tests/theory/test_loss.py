"""The four-token loss: 60 for the sum, 15 for the mean, shares that add up, and GPT-2's tensors."""

from __future__ import annotations

import pytest

from app.theory import evaluate, loss
from app.theory.gpt2 import GPT2_SMALL


def test_the_summed_gradient_of_all_four_tokens_is_60_and_the_mean_15() -> None:
    assert evaluate("loss.summed_gradient", {"first_token": 1, "last_token": 4}) == 60
    assert evaluate("loss.mean_gradient", {"first_token": 1, "last_token": 4}) == 15


@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_replicas_share_the_tokens_and_their_gradients_add_up(d: int) -> None:
    shares = [loss.replica_tokens(replica, d) for replica in range(d)]
    assert [token for first, last in shares for token in range(first, last + 1)] == [1, 2, 3, 4]
    assert sum(loss.summed_gradient(*share) for share in shares) == 60
    assert sum(loss.mean_gradient(*share) for share in shares) / d == 15


@pytest.mark.parametrize(("first", "last"), [(0, 4), (1, 5), (3, 2)])
def test_tokens_that_are_not_there_are_refused(first: int, last: int) -> None:
    with pytest.raises(ValueError, match="_token = "):
        loss.summed_gradient(first, last)


def test_three_replicas_cannot_share_four_tokens() -> None:
    with pytest.raises(ValueError, match="d = 3: must divide 4"):
        loss.replica_tokens(0, 3)


def test_gpt_2_small_has_the_parameters_that_its_authors_count() -> None:
    assert sum(parameter.elements for parameter in GPT2_SMALL) == 124_439_808
    assert len(GPT2_SMALL) == 148
