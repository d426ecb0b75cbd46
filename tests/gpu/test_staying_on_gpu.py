"""The evaluator and the baselines' runner of a GPU stay for one problem after another: `pytest -m gpu`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from hkbench.engine.evaluator import LocalEvaluator
from hkbench.problems import load_problem
from hkbench.records import DeviceKind, EvaluationSettings, Track
from hkbench.sandbox.client import ForkServer

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine"),
]

LEVEL1 = Path(__file__).resolve().parents[2] / "problems" / "level1"
#: With parameters and without, by PyTorch's own kernels, cuBLAS and cuDNN; large outputs, and a single element.
PROBLEMS = (
    "18_Matmul_tall_skinny_fp16",
    "34_CrossEntropy_Loss_fp32",
    "39_Residual_RMSNorm_bf16",
    "38_Matmul_bias_GELU_bf16",
    "28_Conv2d_3x3_fp16",
    "32_Cumsum_fp32",
)


async def test_nobody_is_replaced_after_usual_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forks = 0
    fork = ForkServer.fork

    def counted(server: ForkServer, *words: Any) -> None:
        nonlocal forks
        forks += 1
        fork(server, *words)

    kind = DeviceKind.ROCM if torch.version.hip else DeviceKind.CUDA
    settings = EvaluationSettings(track=Track.ANY, shapes=0, profile_slow=False)
    async with LocalEvaluator(kind, settings) as evaluator:
        monkeypatch.setattr(ForkServer, "fork", counted)
        for name in (*PROBLEMS, PROBLEMS[0]):
            problem = load_problem(LEVEL1 / f"{name}.py")
            code = tmp_path / "code.py"
            code.write_text(problem.source + "\n\nModelNew = Model\n")
            evaluated = await evaluator.evaluate(problem, code, tmp_path / "build", "cuda")
            assert evaluated.verdict is not None and evaluated.verdict.failure is None, evaluated.verdict
        assert evaluator.left_behind == []
    assert forks == 2 * (len(PROBLEMS) + 1), "a judge and a runner for each candidate's build, none to measure"
