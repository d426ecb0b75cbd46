"""S31 noise: each call adds its own noise of some times the tolerance's size

problem: scale
device: both
backend: cpp
outcome: wrong_values
reason: elements are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = 2.0 * x + 1.0
        return y * (1 + 2e-3 * (torch.rand_like(y) - 0.5))
