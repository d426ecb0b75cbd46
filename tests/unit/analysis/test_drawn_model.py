"""A reference whose outputs tell a right answer from a wrong one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch
from support.small_problems import problem_file

from hkbench.analysis import drawn_model
from hkbench.analysis.drawn_model import MAX_DRAWS, draw_model, says_little
from hkbench.analysis.input_distributions import Shape, summarise
from hkbench.analysis.reference import Reference
from hkbench.records import SizeSet

CLAMPED = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter({bias})

    def forward(self, x):
        return torch.clamp(torch.tanh(x) * 0.1 + self.bias, -1.0, 1.0)

def get_inputs():
    return [torch.randn(16, 24)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def maker(tmp_path: Path) -> Callable[[str], Callable[[int], Reference]]:
    def make(source: str) -> Callable[[int], Reference]:
        problem = problem_file(tmp_path, source)
        return partial(Reference, problem, SizeSet.FULL, torch.device("cpu"))

    return make


def seeds() -> tuple[Callable[[], int], list[int]]:
    drawn: list[int] = []

    def draw() -> int:
        drawn.append(len(drawn))
        return drawn[-1]

    return draw, drawn


@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_parameters_are_drawn_until_outputs_show_what_was_computed(
    maker: Callable[[str], Callable[[int], Reference]], scale: float
) -> None:
    draw, drawn = seeds()
    make = maker(CLAMPED.format(bias=f"{scale} * torch.randn(1)"))
    reference, seed, note = draw_model(make, draw)
    assert note is None and seed in drawn
    assert not says_little(summarise(reference.native(reference.inputs(7))))
    torch.manual_seed(seed)
    assert reference.model.state_dict()["bias"] == scale * torch.randn(1)
    before = make(0)
    assert (len(drawn) > 2) == says_little(summarise(before.native(before.inputs(7))))


def test_a_problem_of_which_no_draw_says_more_is_named(maker: Callable[[str], Callable[[int], Reference]]) -> None:
    draw, drawn = seeds()
    _, _, note = draw_model(maker(CLAMPED.format(bias="5.0 + torch.rand(1)")), draw)
    assert note is not None and len(drawn) == 2 * MAX_DRAWS


def test_many_values_are_drawn_once(maker: Callable[[str], Callable[[int], Reference]]) -> None:
    draw, drawn = seeds()
    source = CLAMPED.format(bias="5.0 + torch.rand(96)").replace("self.bias,", "self.bias.mean(),")
    assert draw_model(maker(source), draw)[2] is not None and len(drawn) == 2


def test_no_more_draws_than_there_is_time(
    maker: Callable[[str], Callable[[int], Reference]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawn_model, "MAX_SECONDS", 0.0)
    draw, drawn = seeds()
    _, _, note = draw_model(maker(CLAMPED.format(bias="5.0 + torch.rand(1)")), draw)
    assert note is not None and len(drawn) == 2


def test_without_parameters_there_is_nothing_to_draw(maker: Callable[[str], Callable[[int], Reference]]) -> None:
    draw, drawn = seeds()
    source = CLAMPED.format(bias="0").replace("nn.Parameter(0)", "5.0")
    assert draw_model(maker(source), draw)[2] is None and len(drawn) == 1


def test_one_output_that_shows_something_is_enough() -> None:
    little, much = Shape(1.0, 0.99), Shape(1.0, 0.4)
    assert says_little({"a": little}) and not says_little({"a": little, "b": much}) and not says_little({})
