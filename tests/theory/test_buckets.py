"""Buckets of gradients: the rule, and the sizes that a public report saw on the wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.theory import buckets
from kernels.schedule import fill_buckets

SIZES = st.lists(st.integers(1, 1000), min_size=1, max_size=40)
LIMITS = st.lists(st.integers(1, 2000), min_size=1, max_size=3)


@pytest.mark.parametrize(("bucket_mib", "seen"), [
    (25, (2_052_000, 28_852_224, 15_853_824)),
    (35, (2_052_000, 38_297_600, 6_408_448)),
])
def test_resnet18_falls_into_the_buckets_of_pytorch_issue_48880(bucket_mib: int, seen: tuple[int, ...]) -> None:
    assert tuple(buckets.resnet18_bucket_bytes(bucket, bucket_mib) for bucket in (1, 2, 3)) == seen
    assert buckets.resnet18_num_buckets(bucket_mib) == 3
    assert sum(seen) == buckets.resnet18_bytes() == 46_758_048


def test_one_limit_for_all_makes_two_buckets_at_35_mib_as_torch_has_it_today() -> None:
    assert tuple(buckets.resnet18_bucket_bytes(bucket, 35, first_mib=35) for bucket in (1, 2)) == (37_988_256, 8_769_792)
    with pytest.raises(ValueError, match="from 1 to 2"):
        buckets.resnet18_bucket_bytes(3, 35, first_mib=35)


def test_resnet18_has_its_published_parameters_in_62_tensors() -> None:
    assert sum(parameter.elements for parameter in buckets.RESNET18) == 11_689_512
    assert len(buckets.RESNET18) == len({parameter.name for parameter in buckets.RESNET18}) == 62


def test_the_first_bucket_is_the_last_layer_weight_and_bias_together() -> None:
    first = buckets.ddp_buckets(buckets.RESNET18)[0]
    assert [buckets.RESNET18[index].name for index in first.parameters] == ["fc.bias", "fc.weight"]


@given(sizes=SIZES, limits=LIMITS)
def test_every_parameter_travels_once_whole_and_last_first(sizes: list[int], limits: list[int]) -> None:
    filled = fill_buckets(sizes, limits)
    assert [index for bucket in filled for index in bucket.parameters] == list(reversed(range(len(sizes))))
    assert [bucket.size for bucket in filled] == [sum(sizes[index] for index in bucket.parameters) for bucket in filled]


@given(sizes=SIZES, limits=LIMITS)
def test_a_bucket_is_closed_by_the_parameter_that_takes_it_to_its_limit(sizes: list[int], limits: list[int]) -> None:
    filled = fill_buckets(sizes, limits)
    for number, bucket in enumerate(filled):
        limit = limits[min(number, len(limits) - 1)]
        assert bucket.size - sizes[bucket.parameters[-1]] < limit
        assert bucket.size >= limit or bucket is filled[-1]


def test_a_bucket_that_does_not_exist_or_has_no_size_is_refused() -> None:
    with pytest.raises(ValueError, match="bucket = 4: must be a whole number, from 1 to 3"):
        buckets.resnet18_bucket_bytes(4, 25)
    with pytest.raises(ValueError, match="bucket_mib = 0"):
        buckets.resnet18_num_buckets(0)
    with pytest.raises(ValueError, match="limits = "):
        fill_buckets([1], [])
