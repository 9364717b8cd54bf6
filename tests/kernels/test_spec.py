"""The contract: what may be asked for, why something may not, and JSON both ways."""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.spec import (
    COUNTED_ELEMENTS_PER_RANK,
    STRATEGY_SPECS,
    Choice,
    Experiment,
    Requirement,
    RunSpec,
    add_experiment_arguments,
    experiment_arguments,
    experiment_faults,
    experiment_from_arguments,
    is_installed,
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
    (4, Experiment("data_parallel", options={"sync": "flat", "bucket_bytes": 64}), "bucket_bytes"),
    (4, Experiment("ddp", options={"bucket_bytes": 3}), "bucket_bytes"),
    (4, Experiment("ddp", options={"accumulation": 17}), "accumulation"),
    (4, Experiment("ddp", options={"comm_dtype": "fp8"}), "comm_dtype"),
    (4, Experiment("tensor_megatron", T=6, options={"activations": "sequence_parallel"}), "T"),
    (8, Experiment("megatron_core"), "P"),
    (3, Experiment("loss_reduction"), "P"),
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


def test_a_buffer_too_long_to_count_is_refused_unless_it_is_only_timed() -> None:
    longest = COUNTED_ELEMENTS_PER_RANK * 2

    def faults(elements: int, purpose: str) -> list[str]:
        experiment = Experiment("ring_all_reduce", options={"elements": elements})
        return [str(fault) for fault in run_faults(RunSpec(2, (experiment,), purpose=purpose))]

    assert faults(longest, "counting") == faults(longest + 1, "timing") == []
    [message] = faults(longest + 1, "counting")
    assert message.startswith("elements = 524289: bytes can be counted exactly up to 524288 elements on 2 ranks")


@pytest.mark.parametrize(("field", "wrong"), [
    ("repetitions", (2, 10, True, "3")), ("warmup_steps", (0, 10, 2.5)), ("purpose", ("mining", "")), ("backend", ("mpi", "")),
    ("time_limit_seconds", (0, -1.0, float("nan"), float("inf"), 86_401, "60", True)),
])
def test_a_launch_that_could_not_bring_a_verdict_is_refused(field: str, wrong: tuple[object, ...]) -> None:
    for value in wrong:
        spec = replace(RunSpec(2, (Experiment("single"),)), **{field: value})
        assert [fault.field for fault in run_faults(spec)] == [field], value


def test_a_run_that_only_times_may_do_with_one_repetition() -> None:
    assert run_faults(RunSpec(2, (Experiment("single"),), repetitions=1, purpose="timing")) == []


def test_a_strategy_whose_library_is_missing_says_which_extra_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    spec = RunSpec(2, (Experiment("megatron_core"),))
    [fault] = run_faults(spec)
    assert "install worldsize with its extra 'megatron'" in str(fault)
    assert not is_installed("megatron_core")
    assert is_installed("ddp")
    assert prediction_faults(2, Experiment("megatron_core")) == []


def test_a_requirement_inside_a_missing_package_is_missing() -> None:
    assert not Requirement("no_such_package.inside", extra="lab").is_installed()
    assert Requirement("json.decoder", extra="lab").is_installed()


def test_predictions_reach_beyond_what_runs_here() -> None:
    assert prediction_faults(1024, Experiment("data_parallel", L=96, H=12288, T=2048)) == []


@pytest.mark.parametrize(("strategy", "options"), [
    ("ring_all_reduce", {"elements": 10_000_000, "calls": 1000}), ("data_parallel", {"accumulation": 64}),
    ("ddp", {"bucket_bytes": 2**30}),
])
def test_a_number_too_large_to_run_is_predicted_all_the_same(strategy: str, options: dict[str, int]) -> None:
    experiment = Experiment(strategy, options=options)
    assert [fault.field for fault in experiment_faults(4, experiment)] == list(options)
    assert prediction_faults(4, experiment) == []


def test_what_a_strategy_does_not_take_is_not_predicted_either() -> None:
    wrong = Experiment("ring_all_reduce", options={"elements": -1, "collective": "gossip", "colour": "red"})
    assert [fault.field for fault in prediction_faults(4, wrong)] == ["elements", "collective", "colour"]


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
    Experiment("ddp", options={"bucket_bytes": 64, "accumulation": 4, "sync_when": "every_micro_step", "comm_dtype": "bf16"}),
])
def test_typed_arguments_give_the_experiment_back(experiment: Experiment) -> None:
    parser = argparse.ArgumentParser()
    add_experiment_arguments(parser)
    given_arguments = parser.parse_args(experiment_arguments(4, experiment))
    assert given_arguments.P == 4
    assert experiment_from_arguments(experiment.strategy, given_arguments) == experiment


def test_arguments_are_spelled_with_dashes_and_understood_as_in_json_too() -> None:
    parser = argparse.ArgumentParser()
    add_experiment_arguments(parser)
    dashes = experiment_arguments(4, Experiment("ddp", options={"bucket_bytes": 64, "sync_when": "every_micro_step"}))
    assert dashes[-4:] == ["--bucket-bytes", "64", "--sync-when", "every_micro_step"]
    underscores = [word.replace("bucket-bytes", "bucket_bytes").replace("sync-when", "sync_when") for word in dashes]
    assert parser.parse_args(underscores) == parser.parse_args(dashes)
    assert not re.search("--[a-z]+_", parser.format_help())
