"""What outputs of another layout cost."""

from __future__ import annotations

import torch

from hkbench.judge.layout import LayoutCost

SHAPE = (64, 96, 128)
PLACE = {"shape": list(SHAPE), "dtype": "float32", "strides": [96 * 128, 128, 1]}


def cost(reference: torch.Tensor) -> LayoutCost:
    return LayoutCost({"output": PLACE}, {"output": reference}, torch.device("cpu"))


def answer(tensor: torch.Tensor) -> dict[str, object]:
    return {"leaves": [{"path": "output", "strides": list(tensor.stride())}]}


def test_the_reference_s_layout_and_a_contiguous_one_are_free() -> None:
    plain = torch.zeros(SHAPE)
    turned = torch.zeros(128, 96, 64).permute(2, 1, 0)
    assert cost(plain).seconds(answer(plain)) == 0.0
    assert cost(turned).seconds(answer(turned)) == 0.0
    assert cost(turned).seconds(answer(plain)) == 0.0


def test_another_layout_costs_the_same_in_every_call() -> None:
    turned = torch.zeros(128, 96, 64).permute(2, 1, 0)
    found = cost(torch.zeros(SHAPE))
    seconds = found.seconds(answer(turned))
    assert seconds > 0.0 and found.seconds(answer(turned)) == seconds


def test_numbers_and_empty_answers_cost_nothing() -> None:
    assert cost(torch.zeros(SHAPE)).seconds({"leaves": [{"path": "other", "type": "float", "value": 1.0}]}) == 0.0
