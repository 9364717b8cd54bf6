"""strategies.pipeline_parallel and pipeline_torch: weights of the single process, and exactly the hand-overs of the formula."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import pytest

from kernels.spec import Experiment, experiment_faults, pipeline_stages
from kernels.strategies import pipeline_parallel, pipeline_torch
from tests.kernels.ranks import World, run_on_ranks

WORLD_SIZES = (1, 2, 3, 4)
STEPS = 3
TOLERANCE = 1e-12  # fp64; micro-batches add up in another order than one batch
BUILD = {"pipeline_gpipe": pipeline_parallel.build_gpipe, "pipeline_1f1b": pipeline_parallel.build_1f1b,
         "pipeline_torch": pipeline_torch.build}
BY_HAND = ("pipeline_gpipe", "pipeline_1f1b")

# Fewer layers than ranks, as many, uneven stages; fewer micro-batches than stages and more; one token and several.
SETTINGS = [(num_layers, 4, num_tokens, num_micro_batches)  # L, H, T, m
            for num_layers, num_tokens in ((1, 1), (2, 3), (4, 1), (6, 2)) for num_micro_batches in (1, 2, 5)]

pytestmark = pytest.mark.torchrun
each_world = pytest.mark.parametrize("world_size", WORLD_SIZES)


def experiments(world_size: int) -> list[Experiment]:
    by_hand = [Experiment(name, *setting) for name in BY_HAND for setting in SETTINGS]
    by_torch = [Experiment("pipeline_torch", *setting, {"schedule": schedule})
                for schedule in ("gpipe", "1f1b") for setting in SETTINGS]
    return [experiment for experiment in by_hand + by_torch if not experiment_faults(world_size, experiment)]


@dataclass(frozen=True)
class Outcome:
    """What one rank saw of one experiment; payload of its last step, as called."""

    difference: float
    payload_bytes: int
    num_parameters: int
    trains: bool
    intervals: list[str]


def every_experiment(world: World) -> list[Outcome]:
    return [outcome(world, experiment) for experiment in experiments(world.world_size)]


def outcome(world: World, experiment: Experiment) -> Outcome:
    context = world.context(experiment)
    run = BUILD[experiment.strategy](context)
    for _ in range(STEPS):
        world.calls.clear()
        context.timeline.clear()
        run.step()
    names = [interval.name for interval in context.timeline.intervals() if interval.name[0] in "FB"]
    return Outcome(run.check(), world.calls.payload_bytes, sum(parameter.numel() for parameter in run.parameters()),
                   run.optimizer() is not None, names)


@cache
def outcomes(world_size: int) -> list[tuple[Experiment, list[Outcome]]]:
    """One launch a world size; each experiment with its outcome on every rank."""
    by_rank = run_on_ranks(world_size, every_experiment)
    return list(zip(experiments(world_size), map(list, zip(*by_rank, strict=True)), strict=True))


@each_world
@pytest.mark.parametrize("name", BUILD)
def test_weights_end_equal_to_the_single_process(world_size: int, name: str) -> None:
    judged = [(experiment, max(rank.difference for rank in ranks)) for experiment, ranks in outcomes(world_size)
              if experiment.strategy == name]
    assert len(judged) >= len(SETTINGS)
    assert [experiment for experiment, difference in judged if not difference < TOLERANCE] == []


@each_world
def test_all_gpus_together_hand_over_2mth_elements_at_each_boundary(world_size: int) -> None:
    for experiment, ranks in outcomes(world_size):
        if experiment.strategy in BY_HAND:
            boundaries = pipeline_stages(world_size, experiment.L) - 1
            elements = 2 * experiment.m * experiment.T * experiment.H * boundaries
            assert sum(rank.payload_bytes for rank in ranks) == 8 * elements, experiment


@each_world
def test_every_layer_is_trained_once_and_ranks_beyond_the_stages_idle(world_size: int) -> None:
    for experiment, ranks in outcomes(world_size):
        stages = pipeline_stages(world_size, experiment.L)
        assert sum(rank.num_parameters for rank in ranks) == experiment.L * experiment.H**2
        assert [rank.trains for rank in ranks] == [rank < stages for rank in range(world_size)]


def test_six_layers_on_four_gpus_are_held_two_two_one_one() -> None:
    held = [[rank.num_parameters // 16 for rank in ranks] for experiment, ranks in outcomes(4) if experiment.L == 6]
    assert held
    assert all(layers == [2, 2, 1, 1] for layers in held)


def test_the_timeline_shows_the_schedule_as_it_ran() -> None:
    shown = {experiment.strategy: [" ".join(rank.intervals) for rank in ranks] for experiment, ranks in outcomes(2)
             if experiment.strategy in BY_HAND and (experiment.L, experiment.m) == (2, 2)}
    assert shown == {"pipeline_gpipe": ["F0 F1 B0 B1", "F0 F1 B0 B1"], "pipeline_1f1b": ["F0 F1 B0 B1", "F0 B0 F1 B1"]}
