"""Measured times and the line through them: recorded, fitted by theory, and drawn where they are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.figures import FIGURES
from app.figures.alpha_beta import AlphaBetaView, best_fit, calls_of_each_size, measured, recording, timed_sizes
from app.figures.engine import figure_state
from app.figures.fit_chart import typical_miss
from app.theory import latency

WORLD_SIZES = (2, 3, 4)
each_world = pytest.mark.parametrize("P", WORLD_SIZES)


def drawn(**query: Any) -> AlphaBetaView:
    state = figure_state(FIGURES["alpha_beta"], {name: str(value) for name, value in query.items()})
    assert not state.errors
    assert isinstance(state.view, AlphaBetaView)
    return state.view


@each_world
def test_at_least_eight_sizes_were_measured_over_three_orders_of_magnitude(P: int) -> None:
    sizes = [point.n for point in measured(P)]
    assert len(sizes) >= 8
    assert sizes == sorted(sizes)
    assert sizes[-1] / sizes[0] >= 1000
    assert all(one.fastest_seconds < one.first_decile_seconds < one.median_seconds for one in timed_sizes(P))
    assert [point.seconds for point in measured(P)] == [one.first_decile_seconds for one in timed_sizes(P)]


def test_the_caption_says_how_many_calls_a_dot_stands_for_and_that_the_machine_was_idle() -> None:
    view = drawn()
    assert view.calls == calls_of_each_size() == 150
    assert view.recorded.endswith("on an otherwise idle machine with 2 CPU cores")
    assert recording()["launches"] == 6


@each_world
def test_the_best_line_is_theorys_and_describes_the_machine_that_was_recorded(P: int) -> None:
    """Four processes on two cores wait for each other's turns, which the model does not know: hence no better than this."""
    fit = best_fit(P)
    assert fit == latency.fit_alpha_beta(P, measured(P))
    assert typical_miss(measured(P), fit.seconds) < {2: 10, 3: 6, 4: 13}[P]
    assert all(abs(residual.share) < 0.36 for residual in fit.residuals)


def test_more_processes_on_the_same_cores_make_both_constants_worse() -> None:
    """The lesson says so of this recording."""
    fits = [best_fit(P) for P in WORLD_SIZES]
    assert fits == sorted(fits, key=lambda fit: fit.alpha_seconds)
    assert fits == sorted(fits, key=lambda fit: -fit.bandwidth_bytes_per_second)


@each_world
def test_no_other_line_nearby_has_smaller_squares(P: int) -> None:
    fit = best_fit(P)

    def squares(alpha: float, B: float) -> float:
        return sum(((point.seconds - latency.ring_all_reduce_seconds(P, point.n, alpha, B)) / point.seconds) ** 2
                   for point in measured(P))

    best = squares(fit.alpha_seconds, fit.bandwidth_bytes_per_second)
    for factor in (0.9, 0.99, 1.01, 1.1):
        assert squares(fit.alpha_seconds * factor, fit.bandwidth_bytes_per_second) > best
        assert squares(fit.alpha_seconds, fit.bandwidth_bytes_per_second * factor) > best


@each_world
def test_the_table_holds_measured_predicted_and_both_bandwidths(P: int) -> None:
    view = drawn(P=P)
    assert len(view.table) == len(measured(P))
    if P == 2:  # the factor is 1 on two GPUs
        assert all(row.algbw == row.busbw for row in view.table)
    else:
        assert all(row.algbw != row.busbw for row in view.table)


def test_the_best_line_stays_hidden_until_it_is_asked_for() -> None:
    hidden, shown = drawn(), drawn(best="shown")
    assert len(hidden.wide.lines) == 1
    assert len(shown.wide.lines) == 2
    assert "best" not in "".join(hidden.finding)
    assert [chart.judged_by for chart in (hidden.wide, shown.wide)] == ["your line", "best line"]


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries({
    "P": st.sampled_from(WORLD_SIZES), "alpha": st.integers(1, 100).map(lambda tens: 10 * tens),
    "B": st.integers(2, 100).map(lambda fifties: 50 * fifties), "best": st.sampled_from(["hidden", "shown"])}))
def test_points_bars_and_words_agree_at_all_values(at: dict[str, Any]) -> None:
    view = drawn(**at)
    points = measured(at["P"])

    def own(n: int) -> float:
        return latency.ring_all_reduce_seconds(at["P"], n, at["alpha"] * 1e-6, at["B"] * 1e6)

    law = view.fit.seconds if at["best"] == "shown" else own
    assert view.own_miss == pytest.approx(typical_miss(points, own))
    assert view.best_miss <= view.own_miss + 1.5  # the best line is best in squares; this mean is of absolutes
    for chart in (view.wide, view.narrow):
        assert len(chart.spots) == len(chart.misses) == len(points)
        for (x, y), miss, point in zip(chart.spots, chart.misses, points, strict=True):
            assert chart.layout.left - 0.1 <= x <= chart.layout.right + 0.1
            assert chart.layout.top - 0.1 <= y <= chart.layout.bottom + 0.1
            assert miss.percent == pytest.approx(100 * (point.seconds - law(point.n)) / point.seconds)
            assert chart.miss_ticks[0].at - 0.1 <= miss.y <= miss.y + miss.height <= chart.miss_ticks[2].at + 0.1
            assert (miss.y < chart.middle - 0.01) is (miss.percent > 0.01) or miss.height < 0.2
        assert all(0 <= text.x <= chart.layout.width and 0 < text.y < chart.layout.height for text in chart.texts)
