"""P06 PyTorch by its operators: torch.ops.aten in place of torch

problem: matmul
device: both
backend: cpp
outcome: not_own
reason: PyTorch|library|own
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.ops.aten.mm.default(a, b)
