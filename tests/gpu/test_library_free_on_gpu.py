"""Candidates of track `own` on an NVIDIA GPU, where no library's device code is in their reach: `pytest -m gpu`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import torch
from support.small_problems import AFFINE, candidate_file, problem_file

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.records import DeviceKind, EvaluationSettings, FailureKind, Ownership, Reach, Status, Verdict

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available() or bool(torch.version.hip), reason="torch sees no NVIDIA GPU"),
    pytest.mark.asyncio(loop_scope="module"),
]

CANDIDATE = """
import torch
import triton
import triton.language as tl
from torch import nn

@triton.jit
def affine(x, y, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + place, 2.0 * tl.load(x + place, mask=place < count) + 1.0, mask=place < count)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        affine[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        {more}
        return y
"""
OWN = "pass"
SIMPLE = "y[:1, :1].mul_(1.0)"
LIBRARY = "torch.mm(x, x.t())"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def evaluator() -> AsyncIterator[LocalEvaluator]:
    settings = EvaluationSettings(shapes=0, trials=2, timing_runs=20, profile_slow=False)
    async with LocalEvaluator(DeviceKind.CUDA, settings) as evaluator:
        yield evaluator


async def judged(evaluator: LocalEvaluator, folder: Path, more: str) -> Verdict:
    problem = problem_file(folder / "problems", AFFINE)
    code = candidate_file(folder, CANDIDATE.replace("{more}", more))
    verdict = (await evaluator.evaluate(problem, code, folder / "build", "triton")).verdict
    assert verdict is not None
    return verdict


async def test_its_own_kernels_are_established_as_its_own(evaluator: LocalEvaluator, tmp_path: Path) -> None:
    verdict = await judged(evaluator, tmp_path, OWN)
    assert verdict.status in (Status.FAST, Status.SLOW), verdict
    assert verdict.work is not None and verdict.work.reach is Reach.OWN
    assert verdict.ownership is Ownership.OWN


async def test_kernels_of_pytorch_beside_them_leave_it_open(evaluator: LocalEvaluator, tmp_path: Path) -> None:
    verdict = await judged(evaluator, tmp_path, SIMPLE)
    assert verdict.work is not None and verdict.work.reach is Reach.SIMPLE, verdict
    assert verdict.ownership is not Ownership.OWN


async def test_a_library_is_not_within_reach(evaluator: LocalEvaluator, tmp_path: Path) -> None:
    verdict = await judged(evaluator, tmp_path, LIBRARY)
    assert verdict.failure is not None and verdict.failure.kind is FailureKind.NOT_OWN, verdict
    assert verdict.work is not None and verdict.work.missed is not None
