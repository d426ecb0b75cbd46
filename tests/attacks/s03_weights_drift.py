"""S03 state in parameters: forward counts its calls in a parameter and rescales with it

problem: linear
device: both
backend: cpp
outcome: not_repeatable
reason: wrong when the same inputs came again
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(out_features, features))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x):
        out = nn.functional.linear(x, self.weight, self.bias)
        self.weight.data.mul_(2.0)
        return out
