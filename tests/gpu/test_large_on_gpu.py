"""A problem whose inputs and outputs are a large part of the device's memory: `pytest -m gpu`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.evaluation.shared_memory import NO_CLOCK
from hkbench.problems import load_problem
from hkbench.records import DeviceKind, EvaluationSettings, Track

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine"),
]
#: As KernelBench's elementwise problems are on a GPU of 80 GB: the input is a thirteenth of the memory.
SHARE = 1 / 13
SOURCE = """
import torch
from torch import nn

ROWS = {rows}


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(ROWS, 4096)]


def get_init_inputs():
    return []


ModelNew = Model
"""


async def test_it_is_judged_by_the_evaluators_clock(tmp_path: Path) -> None:
    memory = torch.cuda.mem_get_info()[1]
    path = tmp_path / "1_Large.py"
    path.write_text(SOURCE.format(rows=int(memory * SHARE) // (4 * 4096)))
    kind = DeviceKind.ROCM if torch.version.hip else DeviceKind.CUDA
    async with LocalEvaluator(kind, EvaluationSettings(track=Track.ANY, shapes=0, profile_slow=False)) as evaluator:
        evaluated = await evaluator.evaluate(load_problem(path), path, tmp_path / "build", "cuda")
    verdict = evaluated.verdict
    assert verdict is not None and verdict.failure is None, verdict
    assert not [line for line in verdict.conditions.not_checked if line.startswith(NO_CLOCK)]
