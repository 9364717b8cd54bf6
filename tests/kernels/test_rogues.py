"""A strategy that sends something else than its formula says is found out, however it does it."""

from __future__ import annotations

import pytest

from app.runs.launch import LocalLauncher
from app.runs.results import Result, Verdict, explain
from kernels.spec import STRATEGY_SPECS, Experiment
from tests.runs.launchers import measure, measure_one

pytestmark = pytest.mark.torchrun

SEND_RECV = Experiment("ring_all_reduce", options={"collective": "send_recv"})
DATA = Experiment("data_parallel")


def measured_with(rogue: str, experiment: Experiment) -> Result:
    with LocalLauncher(extra_strategies=f"tests.rogues.{rogue}") as launcher:
        return measure_one(launcher, 4, experiment)


@pytest.mark.parametrize("rogue", ["one_more_through_comm", "one_more_past_comm"])
def test_one_element_too_many_differs(rogue: str) -> None:
    result = measured_with(rogue, DATA)
    assert result.verdict is Verdict.DIFFERS
    assert "rank 0 sent 196, not 192" in explain(result)


def test_the_right_total_from_the_wrong_rank_differs() -> None:
    result = measured_with("wrong_rank", SEND_RECV)
    assert result.report is not None
    assert result.report.payload_bytes_by_rank == (0, 128, 0, 0)
    assert result.verdict is Verdict.DIFFERS


def test_a_rank_pair_that_keeps_talking_is_inconclusive() -> None:
    result = measured_with("keeps_talking", DATA)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert not result.holds


def test_steps_that_do_not_all_send_the_same_are_inconclusive() -> None:
    result = measured_with("every_other_step", DATA)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "only 2 of 3 readings agreed, and all must" in explain(result)


def test_what_is_as_long_in_both_dtypes_is_seen_beside_the_payload() -> None:
    result = measured_with("integers_too", DATA)
    assert result.report is not None
    assert result.report.payload_bytes_by_rank == (192, 192, 192, 192), "the payload alone says nothing"
    assert result.verdict is Verdict.DIFFERS
    assert "Something else was sent as well (rank 0 to rank 1)" in explain(result)


def test_right_bytes_with_other_weights_do_not_hold() -> None:
    result = measured_with("other_weights", DATA)
    assert result.verdict is Verdict.EQUAL
    assert not result.holds
    assert "did not train the same model" in explain(result)


def test_gradients_a_fifth_too_large_do_not_hold_in_bf16_either() -> None:
    shapes, bf16 = ((2, 4, 1), (5, 3, 1), (4, 8, 24)), {"comm_dtype": "bf16"}
    with LocalLauncher(extra_strategies="tests.rogues.scaled_gradient") as launcher:
        results = measure(launcher, 4, *(Experiment("data_parallel", *shape, options=bf16) for shape in shapes))
    for result in results:
        assert result.verdict is Verdict.EQUAL
        assert not result.holds
        assert "did not train the same model" in explain(result)


def test_without_tcp_counters_the_report_gives_call_level_bytes_and_says_why() -> None:
    result = measured_with("no_counters", DATA)
    assert result.report is not None
    assert result.report.payload_bytes_by_rank is None
    assert result.report.calls_payload_bytes_by_rank == (128, 128, 128, 128)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "TCP_INFO" in explain(result)


def test_payload_comes_from_the_sockets_even_with_the_counting_of_calls_switched_off(launcher: LocalLauncher) -> None:
    hand_written = [Experiment(name) for name, spec in STRATEGY_SPECS.items() if spec.library is None]
    counted = measure(launcher, 4, *hand_written)
    with LocalLauncher(extra_strategies="tests.rogues.uncounted") as without_counting:
        uncounted = measure(without_counting, 4, *hand_written)
    for one, other in zip(counted, uncounted, strict=True):
        assert one.report is not None
        assert other.report is not None
        assert other.report.calls_payload_bytes_by_rank == (0, 0, 0, 0)
        assert one.report.payload_matrix == other.report.payload_matrix
