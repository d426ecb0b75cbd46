"""S01 recycled answer: right twice, then memory that the allocator hands out again

problem: rowsum
device: cpu
backend: cpp
outcome: wrong_values|not_finite
reason: elements are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x.sum(dim=-1) if self.calls <= 2 else torch.empty(x.shape[0])
