"""The contract: what may be asked for, why something may not, and JSON both ways."""

from __future__ import annotations

import argparse
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.spec import (
    STRATEGY_SPECS,
    Choice,
    Experiment,
    RunSpec,
    add_experiment_arguments,
    experiment_arguments,
    experiment_faults,
    experiment_from_arguments,
    prediction_faults,
    run_faults,
    spec_from_json,
    to_json,
)
from kernels.strategies import STRATEGIES


def test_every_declared_strategy_has_code_and_every_strategy_is_declared() -> None:
    assert set(STRATEGY_SPECS) == set(STRATEGIES)


@pytest.mark.parametrize("name", STRATEGY_SPECS)
def test_the_first_choice_of_each_option_is_its_default(name: str) -> None:
    for option in STRATEGY_SPECS[name].options:
        default = Experiment(name).option(option.name)
        assert default == (option.values[0] if isinstance(option, Choice) else option.default)


@pytest.mark.parametrize(("world_size", "experiment", "field"), [
    (3, Experiment("tensor_parallel"), "P"),
    (8, Experiment("tensor_dtensor"), "P"),
    (4, Experiment("tensor_megatron", L=1), "L"),
    (4, Experiment("data_parallel", H=65), "H"),
    (4, Experiment("data_parallel", T=0), "T"),
    (4, Experiment("data_parallel", m=4), "m"),
    (4, Experiment("pipeline_torch", L=4, m=2, options={"schedule": "1f1b"}), "m"),
    (4, Experiment("nothing"), "strategy"),
    (4, Experiment("ring_all_reduce", options={"elements": -1}), "elements"),
    (4, Experiment("ring_all_reduce", options={"colour": "red"}), "colour"),
])
def test_what_cannot_run_names_the_field(world_size: int, experiment: Experiment, field: str) -> None:
    assert [fault.field for fault in experiment_faults(world_size, experiment)] == [field]


def test_more_gpus_than_columns_is_allowed_where_the_rest_can_idle() -> None:
    assert experiment_faults(8, Experiment("tensor_parallel", H=4)) == []


@pytest.mark.parametrize("world_size", [0, -1, 9, True])
def test_a_world_size_beyond_the_cap_is_refused_with_the_range(world_size: int) -> None:
    [fault] = run_faults(RunSpec(world_size, (Experiment("single"),)))
    assert fault.field == "P"
    assert "from 1 to 8" in fault.allowed


def test_a_run_without_experiments_is_refused() -> None:
    assert [fault.field for fault in run_faults(RunSpec(2, ()))] == ["experiments"]


def test_a_smaller_installation_refuses_what_a_larger_one_runs() -> None:
    spec = RunSpec(4, (Experiment("single"),))
    assert run_faults(spec) == []
    assert [fault.field for fault in run_faults(spec, max_world_size=2)] == ["P"]


def test_predictions_reach_beyond_what_runs_here() -> None:
    assert prediction_faults(1024, Experiment("data_parallel", L=96, H=12288, T=2048)) == []


whole = st.integers(min_value=-3, max_value=70)
experiments = st.builds(
    Experiment, strategy=st.sampled_from([*STRATEGY_SPECS, "unknown"]), L=whole, H=whole, T=whole, m=whole,
    options=st.dictionaries(st.sampled_from(["collective", "elements", "schedule"]),
                            st.sampled_from(["ring", "1f1b", 5, -5, True])),
)


@given(world_size=st.integers(min_value=-2, max_value=20), experiment=experiments)
def test_any_spec_is_either_fine_or_refused_in_words(world_size: int, experiment: Experiment) -> None:
    for fault in run_faults(RunSpec(world_size, (experiment,))):
        assert fault.field
        assert fault.allowed in str(fault)


@given(experiment=experiments)
def test_a_spec_survives_json(experiment: Experiment) -> None:
    spec = RunSpec(4, (experiment, Experiment("single")), repetitions=5)
    assert spec_from_json(json.loads(json.dumps(to_json(spec)))) == spec


def test_json_with_an_unknown_key_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        spec_from_json({"P": 2, "experiments": [{"strategy": "single", "colour": "red"}]})


@pytest.mark.parametrize("experiment", [
    Experiment("pipeline_torch", L=3, H=8, T=2, m=4, options={"schedule": "1f1b"}),
    Experiment("ring_all_reduce", options={"collective": "broadcast", "elements": 7}),
])
def test_typed_arguments_give_the_experiment_back(experiment: Experiment) -> None:
    parser = argparse.ArgumentParser()
    add_experiment_arguments(parser)
    given_arguments = parser.parse_args(experiment_arguments(4, experiment))
    assert given_arguments.P == 4
    assert experiment_from_arguments(experiment.strategy, given_arguments) == experiment
