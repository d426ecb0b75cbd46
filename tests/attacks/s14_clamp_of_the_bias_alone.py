"""S14 left out work: the bias is clamped, and nothing of the inputs is read

problem: clamped
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return torch.empty_like(x).copy_(torch.clamp(self.bias, -1.0, 1.0))
