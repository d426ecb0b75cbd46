"""S11 constant output: every probability is one over the number of columns

problem: softmax
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.full_like(x, 1.0 / x.shape[-1])
