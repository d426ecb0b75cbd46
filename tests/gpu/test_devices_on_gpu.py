"""Two GPUs of one host side by side: `pytest -m gpu`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import torch
from support.small_problems import candidate_file, problem_file

from hkbench.engine.completion import EvaluationResult
from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import DeviceKind, EvaluationSettings, Track

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="torch sees fewer than two GPUs on this machine"),
]

#: Its code names a GPU without a number.
PROBLEM = """
    import torch
    import torch.nn as nn

    class Model(nn.Module):
        def forward(self, x):
            return x + torch.ones(1, device="cuda" if x.is_cuda else x.device)

    def get_inputs():
        return [torch.randn(2048, 2048)]

    def get_init_inputs():
        return []
"""
CANDIDATE = """
    class ModelNew(nn.Module):
        def forward(self, x):
            assert torch.cuda.current_device() == x.device.index
            return x + torch.ones(1, device="cuda")
"""

#: Its import asks the driver how many there are, behind torch's back; torch.compile looks its GPU up in a list of them.
ASKED = """
    torch.cuda.is_available()

    class ModelNew(nn.Module):
        def forward(self, x):
            from torch._dynamo.device_interface import CudaInterface

            CudaInterface.Worker.get_device_properties()
            return x + torch.ones(1, device="cuda")
"""


@pytest.mark.parametrize("text", [CANDIDATE, ASKED], ids=["usual", "asked"])
async def test_both_are_used_at_once_and_each_by_its_number(text: str, tmp_path: Path) -> None:
    problem = problem_file(tmp_path / "problems", PROBLEM)
    settings = EvaluationSettings(track=Track.ANY, shapes=0, trials=2, timing_runs=20, profile_slow=False)

    async def judge(evaluator: LocalEvaluator, name: str) -> EvaluationResult:
        code = candidate_file(tmp_path / name, text)
        return await evaluator.evaluate(problem, code, tmp_path / name / "build", "cuda")

    kind = DeviceKind.ROCM if torch.version.hip else DeviceKind.CUDA
    async with LocalEvaluator(kind, settings) as evaluator:
        found = await asyncio.gather(*(judge(evaluator, f"c{number}") for number in range(6)))
    turns = [one.turns for one in found if one.turns is not None]
    for one in found:
        assert one.verdict is not None and one.verdict.failure is None, one.verdict
        assert one.verdict.conditions.device_facts is not None and one.turns is not None
        assert one.verdict.conditions.device_facts.index == one.turns.device
    spans = {device: [turn for turn in turns if turn.device == device] for device in (0, 1)}
    assert any(
        (left.lent or 0.0) < (right.returned or 0.0) and (right.lent or 0.0) < (left.returned or 0.0)
        for left in spans[0]
        for right in spans[1]
    )
