"""H22 process bomb: processes are started until no more can be

problem: rowsum
device: cpu
backend: cpp
outcome: limit|runtime_error
reason: too many processes|unavailable
"""

import subprocess

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(5000):
            subprocess.Popen(["sleep", "60"])
        return x.sum(dim=-1)
