"""A query becomes a state, under the figure's own address and in a lesson's query among others."""

from __future__ import annotations

import pytest

from app.figures import FIGURES
from app.figures.engine import figure_state, query_pairs, start_values

VOLUME = FIGURES["volume"]


def test_names_are_the_keys_of_the_registry_and_fit_into_addresses() -> None:
    assert all(name == figure.name and name.isidentifier() for name, figure in FIGURES.items())


@pytest.mark.parametrize("query", [{"P": "8"}, {"volume.P": "8"}, {"volume.P.from4": "8"}, {"P.from4": "8"},
                                   {"volume.P": "8", "what_moves.strategy": "nonsense"}])
def test_the_figures_own_address_takes_names_with_and_without_its_own(query: dict[str, str]) -> None:
    state = figure_state(VOLUME, query)
    assert (state.inputs.number("P"), dict(state.errors)) == (8, {})


def test_a_lessons_query_is_read_by_prefix_alone() -> None:
    state = figure_state(VOLUME, {"P": "99", "try.q": "2", "volume.P": "8"}, "volume.")
    assert (state.inputs.number("P"), dict(state.errors)) == (8, {})


def test_an_unknown_plain_name_is_refused_on_the_figures_own_address() -> None:
    assert list(figure_state(VOLUME, {"q": "1"}).errors) == ["q"]


def test_a_state_survives_its_own_query() -> None:
    state = figure_state(VOLUME, {"P": "8", "scope": "all"})
    assert figure_state(VOLUME, query_pairs(VOLUME, state.inputs), "volume.").inputs == state.inputs


def test_the_same_inputs_are_computed_once() -> None:
    assert figure_state(VOLUME, {"P": "7"}).view is figure_state(VOLUME, {"volume.P": "7"}).view


def test_a_lessons_starting_values_must_be_the_figures() -> None:
    assert start_values(VOLUME, {"P": "8"}) == {"P": 8}
    with pytest.raises(ValueError, match="P must be a whole number from 1 to 64, not 99"):
        start_values(VOLUME, {"P": "99"})
