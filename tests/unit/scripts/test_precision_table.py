"""The emulated precisions of scripts/precision_table.py, and what becomes of a small problem by each."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from support.small_problems import LINEAR, problem_file

from hkbench.records import SizeSet
from scripts.precision_table import Found, downgrades, measured, tf32


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (1.0 + 2.0**-10, 1.0 + 2.0**-10),
        (1.0 + 2.0**-11, 1.0),
        (1.0 + 2.0**-11 + 2.0**-20, 1.0 + 2.0**-10),
        (1.0 + 3 * 2.0**-11, 1.0 + 2.0**-9),
        (-1.0 - 2.0**-12, -1.0),
        (math.inf, math.inf),
    ],
)
def test_tf32_rounds_to_nearest_even(value: float, rounded: float) -> None:
    assert float(tf32(torch.tensor([value]))) == rounded
    assert tf32(torch.tensor([value], dtype=torch.bfloat16)).dtype is torch.bfloat16


def test_a_product_loses_what_its_operands_do() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(32, 96), torch.randn(96, 8)
    exact = a.double() @ b.double()
    errors = {}
    for one in downgrades():
        with one:
            errors[one.name] = float((torch.mm(a, b).double() - exact).abs().max())
        assert one.calls == 1
    assert errors["eager"] < errors["bf16 x 2"] < errors["TF32"] < errors["bf16"]
    assert errors["fp16 accumulation"] > errors["TF32"]


def test_a_linear_layer_is_measured_and_a_sum_is_not(tmp_path: Path) -> None:
    linear = problem_file(tmp_path / "linear", LINEAR)
    found = measured(linear.path, torch.device("cpu"), SizeSet.FULL)
    assert found is not None
    assert found["eager"].cell.startswith("both") and found["bf16"].cell.startswith("neither")
    assert found["TF32"].ratio < found["bf16"].ratio
    adds = problem_file(tmp_path / "sum", LINEAR.replace("self.linear(x)", "x + 1.0"))
    assert measured(adds.path, torch.device("cpu"), SizeSet.FULL) is None


def test_what_was_not_computed_so_is_no_result() -> None:
    assert Found(ratio=2.0, left_out=1).cell == "-"
    assert Found(ratio=math.inf, kernelbench=False).cell == "neither (inf)"
