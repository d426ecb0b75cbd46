"""Models whose values are loaded anyway are made without drawing any."""

from __future__ import annotations

import torch

from hkbench.runner.inbox import initial_values_left


def test_nothing_is_drawn_and_constants_are_set() -> None:
    before = torch.random.get_rng_state()
    with initial_values_left():
        layer, norm = torch.nn.Linear(64, 64), torch.nn.LayerNorm(8)
        torch.nn.init.orthogonal_(layer.weight)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.equal(norm.weight, torch.ones(8)) and layer.weight.shape == (64, 64)
    torch.nn.Linear(4, 4)
    assert not torch.equal(torch.random.get_rng_state(), before)
