"""The grid of a verification and the sums over it. The launcher makes reports up: zero bytes everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from app import texts
from app.errors import RunFailed
from app.runs import verify
from app.runs.launch import Cancelled, Event, OnEvent, ignore, never
from kernels.spec import STRATEGY_SPECS, Choice, Experiment, RunReport, RunSpec, experiment_faults
from tests.runs.made_up import MadeUpLauncher, report

SINGLE, DATA = Experiment("single"), Experiment("data_parallel")


class FailingLauncher:
    """Ends each run at the first experiment that `fails`, on rank 1, while rank 0 has gone on to the next one.

    Without `fails` it ends before any has begun.
    """

    def __init__(self, fails: Callable[[Experiment], bool] | None = None) -> None:
        self.fails = fails
        self.launches: list[int] = []

    def run(self, spec: RunSpec, on_event: OnEvent = ignore, cancelled: Cancelled = never) -> RunReport:
        self.launches.append(len(spec.experiments))
        if self.fails is None:
            raise RunFailed("No rank could join.")
        for place, experiment in enumerate(spec.experiments):
            for rank in range(spec.P):
                on_event(Event("phase", {"experiment": place, "rank": rank}))
            if self.fails(experiment):
                on_event(Event("phase", {"experiment": place + 1, "rank": 0}))
                raise RunFailed(f"Rank 1 was killed in {experiment.strategy}.", rank=1)
        return report(spec)


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


def test_a_launch_in_which_nothing_begins_fails_each_of_its_cells_with_the_reason() -> None:
    launcher = FailingLauncher()
    cells = verify.verify_world(launcher, 2, [SINGLE, SINGLE], quiet)
    row = row_of(cells)
    assert (row.cells, row.failed, row.holds) == (2, 2, False)
    assert {cell.failure for cell in cells} == {"No rank could join."}
    assert launcher.launches == [2]


def test_a_cell_that_ends_its_launch_fails_alone() -> None:
    progress: list[tuple[int, int]] = []
    launcher = FailingLauncher(lambda experiment: experiment.strategy == "ddp")
    asked = [SINGLE, SINGLE, Experiment("ddp"), SINGLE, Experiment("single", T=3)]
    cells = verify.verify_world(launcher, 2, asked, lambda done, total: progress.append((done, total)))
    assert [cell.experiment for cell in cells] == asked
    assert [cell.failure for cell in cells] == ["", "", "Rank 1 was killed in ddp.", "", ""]
    assert [cell.holds for cell in cells] == [True, True, False, True, True]
    assert launcher.launches == [5, 2, 2]
    assert progress[-1] == (4, 5)


def test_a_failed_cell_is_told_with_its_setting() -> None:
    failed = verify.Cell(4, Experiment("pipeline_torch", L=3, m=2, options={"schedule": "1f1b"}), None, "Rank 1 was killed.")
    told = texts.verification({}, verify.summary([failed]), [failed])
    assert "Pipeline parallel (torch): P = 4, L = 3, H = 4, T = 1, m = 2, schedule = 1f1b: Rank 1 was killed." in told
    [listed] = texts.verification_json({}, (), [failed], holds=False)["failures"]
    assert (listed["spec"]["P"], listed["spec"]["options"]) == (4, {"schedule": "1f1b"})
    assert listed["message"] == "Rank 1 was killed."


def test_a_strategy_that_always_ends_its_launch_gets_three_and_the_others_are_measured() -> None:
    launcher = FailingLauncher(lambda experiment: experiment.strategy == "ddp")
    asked = [Experiment("ddp", T=tokens) for tokens in range(1, 9)] + [SINGLE]
    cells = verify.verify_world(launcher, 2, asked, quiet)
    assert [cell.failure.split(":")[0] for cell in cells] == ["Rank 1 was killed in ddp."] * 3 + ["Not run"] * 5 + [""]
    assert launcher.launches == [9, 8, 7, 1]


def test_a_strategy_of_which_nothing_was_run_has_no_row() -> None:
    assert verify.summary([]) == []
