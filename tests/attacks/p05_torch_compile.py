"""P05 torch.compile: the compiler writes the kernel

problem: scale
device: both
backend: cpp
outcome: not_own|suspect|timeout
reason: PyTorch's|the evaluator's clock|did not end within|device code
"""

import torch
import torch.nn as nn


@torch.compile
def affine(x):
    return 2.0 * x + 1.0


class ModelNew(nn.Module):
    def forward(self, x):
        return affine(x)
