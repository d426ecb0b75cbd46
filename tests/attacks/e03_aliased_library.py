"""E03 alias: torch.matmul under the name of a kernel

problem: matmul
device: both
backend: cpp
outcome: not_own
reason: PyTorch|library|own
"""

import torch.nn as nn
from torch import matmul as fast_tiled_kernel


class ModelNew(nn.Module):
    def forward(self, a, b):
        return fast_tiled_kernel(a, b)
