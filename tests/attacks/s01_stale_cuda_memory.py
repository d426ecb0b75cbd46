"""S01 memory reuse: the caching allocator gives back the block of an earlier answer

problem: rowsum
device: cuda
backend: cuda
outcome: not_finite|wrong_values|not_repeatable
reason: are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls <= 2:
            return x.sum(dim=-1)
        return torch.empty(x.shape[0], device=x.device)
