"""Judge the text of a candidate on the CPU, and print what came of it.

python examples/api/judge_a_candidate.py
"""

import hkbench
from hkbench.problems import SHIPPED

CODE = """
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.sum(x, dim=-1)
"""

settings = hkbench.EvaluationSettings(
    track="any", trials=2, timing_runs=5
)  # "any": PyTorch's own kernels count as well
verdict = hkbench.evaluate(SHIPPED / "level1" / "9_Sum_last_dim_fp32.py", CODE, device="cpu", settings=settings)
print(verdict.status, verdict.failure.message if verdict.failure else verdict.speedup)
