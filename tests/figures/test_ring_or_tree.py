"""Ring or tree: the sentence is true at all values, the crossing is where theory puts it, and all of it is inside."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.figures import FIGURES
from app.figures.engine import figure_state
from app.figures.ring_or_tree import RingOrTreeView
from app.figures.time_chart import percent_text, rate_text, size_text, three_digits, time_text
from app.theory import latency

values = st.fixed_dictionaries({
    "P": st.integers(2, 1024), "size": st.integers(0, 20), "alpha": st.integers(1, 200), "B": st.integers(1, 900)})


def drawn(**query: Any) -> RingOrTreeView:
    state = figure_state(FIGURES["ring_or_tree"], {name: str(value) for name, value in query.items()})
    assert not state.errors
    assert isinstance(state.view, RingOrTreeView)
    return state.view


def test_a_small_message_on_many_gpus_belongs_to_the_tree_and_a_large_one_on_few_to_the_ring() -> None:
    assert drawn(P=64, size=10).finding[1].startswith("the tree is")
    assert drawn(P=4, size=20, B=1).ring.seconds < drawn(P=4, size=20, B=1).tree.seconds


def test_on_two_gpus_the_ring_never_loses() -> None:
    for size in range(21):
        view = drawn(P=2, size=size)
        assert view.ring.seconds <= view.tree.seconds
        assert view.crossover == 0
        assert view.wide.crossing is None


@settings(max_examples=150, deadline=None)
@given(values)
def test_the_finding_is_true_at_all_values(at: dict[str, int]) -> None:
    view = drawn(**at)
    P, n, alpha, B = at["P"], 1024 * 2 ** at["size"], at["alpha"] * 1e-6, at["B"] * 10**9
    ring, tree = latency.ring_all_reduce_seconds(P, n, alpha, B), latency.double_tree_seconds(P, n, alpha, B)
    assert (view.ring.seconds, view.tree.seconds) == (ring, tree)
    stressed = view.finding[1]
    if stressed.startswith("the ring"):
        assert ring < tree
        assert n >= view.crossover
    elif stressed.startswith("the tree"):
        assert tree < ring
        assert n <= view.crossover
    else:
        assert max(ring, tree) / min(ring, tree) < 1.05
    assert view.crossover == latency.crossover_bytes(P, alpha, B)
    assert tree / ring <= P / (P - 1) + 1e-9  # "by ... at most"


@settings(max_examples=100, deadline=None)
@given(values)
def test_table_and_drawing_agree_and_nothing_lies_outside(at: dict[str, int]) -> None:
    view = drawn(**at)
    if at["size"] % 2 == 0:
        row = view.table[at["size"] // 2]
        assert row[1:3] == (time_text(view.ring.seconds), time_text(view.tree.seconds))
    for chart in (view.wide, view.narrow):
        for x, y in chart.spots:
            assert chart.layout.left - 0.1 <= x <= chart.layout.right + 0.1
            assert chart.layout.top - 0.1 <= y <= chart.layout.bottom + 0.1
        assert chart.crossing is None or chart.layout.left <= chart.crossing <= chart.layout.right
        assert all(0 <= text.x <= chart.layout.width and 0 < text.y < chart.layout.bottom for text in chart.texts)


def test_sizes_times_and_rates_are_written_with_three_digits_and_a_unit() -> None:
    plain = [text.replace("\N{NO-BREAK SPACE}", " ") for text in (
        size_text(1024), size_text(1536), size_text(5 * 2**20), size_text(2**30), time_text(2.04e-4), time_text(0.00134),
        time_text(2.5), time_text(1e-3), rate_text(2.78e9), rate_text(340e6), rate_text(12_000), percent_text(5.56),
        percent_text(145.4))]
    assert plain == ["1 KiB", "1.5 KiB", "5 MiB", "1 GiB", "204 µs", "1.34 ms", "2.5 s", "1 ms", "2.78 GB/s", "340 MB/s",
                     "12 kB/s", "5.6 %", "145 %"]
    assert [three_digits(value) for value in (1024, 21.3, 2.134, 2.0, 0.5)] == ["1,024", "21.3", "2.13", "2", "0.5"]
