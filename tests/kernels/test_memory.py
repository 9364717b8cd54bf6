"""Bytes held are counted once each, parameters never as saved activations."""

from __future__ import annotations

import torch
from torch import nn

from kernels import model
from kernels.meters.memory import memory_report, saved_for_backward_bytes, storage_bytes


def test_two_views_of_one_storage_count_once() -> None:
    whole = torch.zeros(10, dtype=torch.float64)
    assert storage_bytes([whole, whole[2:4], whole.view(2, 5)]) == 80


def test_saved_bytes_are_the_inputs_of_the_layers_and_the_error_but_no_weights() -> None:
    layers = model.stack(model.initial_weights(3, 8, seed=0, dtype=torch.float32))
    tokens, target = torch.randn(5, 8), torch.randn(5, 8)

    def step() -> None:
        model.squared_error(layers(tokens), target, 5).backward()

    inputs, error = 3 * 5 * 8 * 4, 5 * 8 * 4
    assert saved_for_backward_bytes(step, layers.parameters()) == inputs + error


def test_what_backward_has_let_go_of_is_not_held_twice() -> None:
    """Forward and backward, twice in a step: the fullest moment is that of one of them."""
    layers = model.stack(model.initial_weights(3, 8, seed=0, dtype=torch.float32))
    tokens, target = torch.randn(5, 8), torch.randn(5, 8)

    def one_after_the_other() -> None:
        for _ in range(2):
            model.squared_error(layers(tokens), target, 5).backward()

    def both_forwards_first() -> None:
        for loss in [model.squared_error(layers(tokens), target, 5) for _ in range(2)]:
            loss.backward()

    inputs, error = 3 * 5 * 8 * 4, 5 * 8 * 4
    assert saved_for_backward_bytes(one_after_the_other, layers.parameters()) == inputs + error
    assert saved_for_backward_bytes(both_forwards_first, layers.parameters()) == 2 * (inputs + error) - 5 * 8 * 4


def test_a_report_lists_parameters_gradients_and_optimizer_state_apart() -> None:
    layer = nn.Linear(4, 4, bias=False)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(1, 4)).sum().backward()
    optimizer.step()
    report = memory_report(list(layer.parameters()), optimizer, saved_bytes=7)
    assert (report.parameter_bytes, report.gradient_bytes, report.saved_for_backward_bytes) == (64, 64, 7)
    assert report.optimizer_bytes == 2 * 64 + 4  # two moments and a step count


def test_a_rank_that_trains_nothing_holds_nothing() -> None:
    report = memory_report([], None, saved_bytes=0)
    assert (report.parameter_bytes, report.gradient_bytes, report.optimizer_bytes) == (0, 0, 0)
