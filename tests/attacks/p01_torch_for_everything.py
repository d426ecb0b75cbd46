"""P01 PyTorch for everything: no kernel of its own

problem: softmax
device: both
backend: cpp
outcome: not_own
reason: PyTorch|library|own
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
