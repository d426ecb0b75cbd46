"""The reference in float64 on a GPU: `pytest -m gpu`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from support.small_problems import problem_file

from hkbench.analysis.reference import Reference
from hkbench.records import SizeSet

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine"),
]

TRANSPOSED = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose3d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)

    def forward(self, x):
        return self.up(x)

def get_inputs():
    return [torch.randn(2, 4, 5, 6, 7)]

def get_init_inputs():
    return []
"""


def test_transposed_convolutions_are_those_of_cudnn_to_rounding(tmp_path: Path) -> None:
    reference = Reference(problem_file(tmp_path, TRANSPOSED), SizeSet.FULL, torch.device("cuda"), 0)
    (x,) = reference.inputs(1)
    precise = reference.precise([x], reference.native([x]))["output"]
    assert reference.precision == "float64"
    expected = reference.model.double()(x.double())
    torch.testing.assert_close(precise, expected, rtol=1e-12, atol=1e-13)
