"""What outputs of another layout cost."""

from __future__ import annotations

import torch

from hkbench.evaluation.arena import Layout
from hkbench.evaluation.form import Leaf
from hkbench.evaluation.layout import LayoutCost

SHAPE = (64, 96, 128)
PLACE = Layout().place(torch.empty(SHAPE))


def cost(reference: torch.Tensor) -> LayoutCost:
    return LayoutCost({"output": PLACE}, {"output": reference}, torch.device("cpu"))


def leaves(tensor: torch.Tensor) -> list[Leaf]:
    return [Leaf("output", list(tensor.shape), list(tensor.stride()), None)]


def test_the_reference_s_layout_and_a_contiguous_one_are_free() -> None:
    plain = torch.zeros(SHAPE)
    turned = torch.zeros(128, 96, 64).permute(2, 1, 0)
    assert cost(plain).seconds(leaves(plain)) == 0.0
    assert cost(turned).seconds(leaves(turned)) == 0.0
    assert cost(turned).seconds(leaves(plain)) == 0.0


def test_another_layout_costs_the_same_in_every_call() -> None:
    turned = torch.zeros(128, 96, 64).permute(2, 1, 0)
    found = cost(torch.zeros(SHAPE))
    seconds = found.seconds(leaves(turned))
    assert seconds > 0.0 and found.seconds(leaves(turned)) == seconds


def test_numbers_and_empty_answers_cost_nothing() -> None:
    assert cost(torch.zeros(SHAPE)).seconds([Leaf("other", [], [], None)]) == 0.0
