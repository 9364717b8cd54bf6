"""The grid of a verification and the sums over it. The launcher makes reports up: zero bytes everywhere."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.errors import RunFailed
from app.runs import verify
from app.runs.launch import Cancelled, Event, OnEvent, ignore, never
from kernels.spec import STRATEGY_SPECS, Choice, Experiment, RunReport, RunSpec, experiment_faults
from tests.runs.made_up import MadeUpLauncher, report

SINGLE, DATA = Experiment("single"), Experiment("data_parallel")


class FailingLauncher:
    """Each run starts its first experiment and ends there."""

    def run(self, spec: RunSpec, on_event: OnEvent = ignore, cancelled: Cancelled = never) -> RunReport:
        on_event(Event("phase", {"experiment": 0}))
        raise RunFailed("Rank 1 was killed.")


def quiet(_done: int, _total: int) -> None:
    """Nobody watches."""


def row_of(cells: list[verify.Cell]) -> verify.Row:
    (row,) = verify.summary(cells)
    return row


@pytest.mark.parametrize("world_size", range(1, 9))
def test_the_grid_holds_every_setting_once_and_only_such_as_can_run(world_size: int) -> None:
    cells = verify.grid(world_size)
    assert all(not experiment_faults(world_size, cell) for cell in cells)
    assert all(cell not in cells[:position] for position, cell in enumerate(cells))


@pytest.mark.parametrize("world_size", range(1, 9))
def test_a_quick_part_is_fixed_by_its_seed_and_leaves_no_strategy_out(world_size: int) -> None:
    cells = verify.grid(world_size)
    part = verify.quick(cells, seed=0, world_size=world_size)
    assert len(part) == verify.QUICK_CELLS
    assert part == verify.quick(cells, seed=0, world_size=world_size) != verify.quick(cells, seed=1, world_size=world_size)
    assert {cell.strategy for cell in part} == {cell.strategy for cell in cells}


def test_the_whole_grid_reaches_every_strategy_that_is_installed() -> None:
    reached = {cell.strategy for world_size in (1, 2, 4) for cell in verify.grid(world_size)}
    assert reached == {name for name in STRATEGY_SPECS if verify.is_installed(name)}


@pytest.mark.parametrize("name", [name for name in STRATEGY_SPECS if verify.is_installed(name)])
def test_every_word_and_every_number_that_a_strategy_declares_is_run(name: str) -> None:
    cells = [cell for world_size in (2, 4) for cell in verify.grid(world_size) if cell.strategy == name]
    for option in STRATEGY_SPECS[name].options:
        chosen = {cell.option(option.name) for cell in cells}
        if isinstance(option, Choice):
            assert chosen == set(option.values), option.name
        else:
            assert len(chosen) > 1, option.name


def test_a_word_declared_today_is_in_the_grid_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    colours = Choice("colour", "what to paint", ("none", "red"))
    spec = replace(STRATEGY_SPECS["pipeline_torch"], options=(*STRATEGY_SPECS["pipeline_torch"].options, colours))
    monkeypatch.setitem(STRATEGY_SPECS, "pipeline_torch", spec)
    assert {cell.option("colour") for cell in verify.grid(4) if cell.strategy == "pipeline_torch"} == {"none", "red"}


def test_what_sends_as_predicted_is_equal_and_holds() -> None:
    row = row_of(verify.verify_world(MadeUpLauncher(), 2, [SINGLE, SINGLE], quiet))
    assert (row.cells, row.equal, row.holds) == (2, 2, True)


def test_one_cell_that_differs_and_the_row_does_not_hold() -> None:
    one, two = (verify.verify_world(MadeUpLauncher(), world_size, [DATA], quiet) for world_size in (1, 2))
    row = row_of(one + two)
    assert (row.cells, row.equal, row.differs, row.holds) == (2, 1, 1, False)


def test_readings_that_do_not_agree_are_counted_as_inconclusive() -> None:
    launcher = MadeUpLauncher(make=lambda spec: report(spec, agreeing=2))
    row = row_of(verify.verify_world(launcher, 2, [SINGLE], quiet))
    assert (row.equal, row.inconclusive, row.holds) == (0, 1, False)


def test_right_bytes_with_other_weights_count_as_a_difference() -> None:
    def off(spec: RunSpec) -> RunReport:
        made_up = report(spec)
        return replace(made_up, experiments=tuple(replace(one, weights_max_difference=1.0) for one in made_up.experiments))

    row = row_of(verify.verify_world(MadeUpLauncher(make=off), 2, [SINGLE], quiet))
    assert (row.equal, row.differs, row.holds) == (0, 1, False)


def test_a_launch_that_fails_fails_each_of_its_cells_with_the_reason() -> None:
    progress: list[tuple[int, int]] = []
    cells = verify.verify_world(FailingLauncher(), 2, [SINGLE, SINGLE], lambda done, total: progress.append((done, total)))
    row = row_of(cells)
    assert (row.cells, row.failed, row.holds) == (2, 2, False)
    assert {cell.failure for cell in cells} == {"Rank 1 was killed."}
    assert progress == [(0, 2)]


def test_a_strategy_of_which_nothing_was_run_has_no_row() -> None:
    assert verify.summary([]) == []
