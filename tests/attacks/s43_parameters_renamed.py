"""S43 no bias at all: the parameter does not exist, so that nothing can be loaded into it

problem: linear
device: both
backend: cpp
outcome: wrong_parameters|wrong_values
reason: parameter|are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, features) / features**0.5)

    def forward(self, x):
        return x @ self.weight.t()
