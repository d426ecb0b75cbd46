"""T23 right at first: correct for the usual number of checks, then zeros

problem: rowsum
device: cpu
backend: cpp
outcome: wrong_values|not_repeatable
reason: are wrong|differ
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x.sum(dim=-1) if self.calls <= 5 else torch.zeros(x.shape[0])
