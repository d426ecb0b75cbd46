"""Further shapes: those that a file names, and hidden ones that are drawn and that the reference takes."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

import pytest

from hkbench.analysis.shapes import HIDDEN, MIN_BYTES, Shapes
from hkbench.device_kinds.cpu import CPU
from hkbench.device_kinds.emulated import EMULATED
from hkbench.problems import SHIPPED, find_problems, load_problem
from hkbench.problems.sizes import constants_in_force
from hkbench.records import Problem, ShapeKind, SizeSet

PROBLEMS = find_problems(SHIPPED, 1)
GROWTH = CPU.max_growth
MODEL = """import torch
class Model(torch.nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups
    def forward(self, x):
        return torch.nn.functional.group_norm(x, self.groups)
batch = 16
channels = 64
length = 128
groups = 8
dim = 1
def get_inputs():
    return [torch.randn(batch, channels, length)]
def get_init_inputs():
    return [groups]
"""


def problem(folder: Path, text: str = MODEL) -> Problem:
    path = folder / "1_Groups.py"
    path.write_text(text)
    return load_problem(path)


def drawn(shapes: Shapes, seed: int) -> dict[ShapeKind, dict[str, int | float]]:
    """The first shape of each kind that the reference takes."""
    found = (next(tries, None) for tries in islice(shapes.hidden(random.Random(seed)), len(HIDDEN)))
    return {shape.kind: dict(shape.constants) for shape in found if shape is not None}


def test_a_file_without_shapes_has_hidden_ones_of_what_its_inputs_depend_on(tmp_path: Path) -> None:
    shapes = Shapes(problem(tmp_path), SizeSet.FULL, GROWTH)
    assert shapes.visible(3, random.Random(0)) == []
    for seed in range(2):
        found = drawn(shapes, seed)
        assert set(found) == set(ShapeKind) - {ShapeKind.NAMED}
        assert all(set(one) <= {"batch", "channels", "length"} for one in found.values())
        assert all(one.get("channels", 64) % 8 == 0 for one in found.values())  # else group_norm refuses
        assert 1 in found[ShapeKind.ONE].values()
        full = {"batch": 16, "channels": 64, "length": 128}
        assert any(size > full[name] for name, size in found[ShapeKind.LARGER].items())
        assert all(size < full[name] for name, size in found[ShapeKind.SMALLER].items())


def test_hidden_shapes_follow_the_seed_alone(tmp_path: Path) -> None:
    shapes = Shapes(problem(tmp_path), SizeSet.FULL, GROWTH)
    assert drawn(shapes, 1) == drawn(shapes, 1)
    assert len({str(drawn(shapes, seed)) for seed in range(3)}) == 3


def test_named_shapes_are_chosen_and_say_what_may_be_drawn(tmp_path: Path) -> None:
    named = 'SHAPES = [{"length": 7}, {"length": 9}, {"batch": 3, "length": 11}]\n'
    shapes = Shapes(problem(tmp_path, MODEL + named), SizeSet.FULL, GROWTH)
    chosen = shapes.visible(2, random.Random(1))
    assert len(chosen) == 2 and {one.kind for one in chosen} == {ShapeKind.NAMED}
    assert all(one.constants in shapes._problem.shapes for one in chosen)
    assert len(shapes.visible(9, random.Random(1))) == 3
    assert all(set(one) <= {"batch", "length"} for one in drawn(shapes, 3).values())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.randn(batch, channels, length)", "torch.randn(int(torch.rand(1) + 4), 8)"),
        ("batch = 16", "batch = 16.0"),
    ],
)
def test_where_nothing_can_be_drawn_it_says_why(tmp_path: Path, old: str, new: str) -> None:
    text = MODEL.replace(old, new).replace("channels, length)", "64, 128)").replace("randn(batch", "randn(int(batch)")
    shapes = Shapes(problem(tmp_path, text), SizeSet.FULL, GROWTH)
    assert shapes.why is not None and drawn(shapes, 0) == {}


@pytest.mark.parametrize("one", PROBLEMS, ids=lambda one: one.name)
def test_the_forty_have_three_visible_shapes_and_hidden_ones(one: Problem) -> None:
    shapes = Shapes(one, SizeSet.CPU, GROWTH)
    assert shapes.why is None and len(one.shapes) >= 3
    in_force = constants_in_force(SizeSet.CPU, one)
    for shape in one.shapes:
        needed = shapes._needed(shape)
        assert needed is not None and needed <= 400e6, shape  # the reference takes it
        assert {**in_force, **shape} != in_force
    kinds = shapes.hidden(random.Random(one.number))
    for tries in (next(kinds), next(kinds)):
        needed = shapes._needed(next(tries).constants)
        assert needed is not None and shapes._bytes is not None
        assert needed <= max(GROWTH * shapes._bytes, MIN_BYTES)


@pytest.mark.parametrize("one", PROBLEMS, ids=lambda one: one.name)
def test_on_an_emulated_gpu_each_kind_is_found_and_none_is_much_larger(one: Problem) -> None:
    growth = EMULATED[0].max_growth
    assert growth < GROWTH
    shapes = Shapes(one, SizeSet.EMULATED, growth)
    found = drawn(shapes, one.number)
    assert set(found) == set(HIDDEN)
    assert shapes._bytes is not None
    for kind, constants in found.items():
        needed = shapes._needed(constants)
        assert needed is not None and needed <= max(growth * shapes._bytes, MIN_BYTES), kind
