"""C06 derived weights: weight and bias are merged at the first call and never again

problem: linear
device: both
backend: cpp
outcome: stale_parameters|wrong_values
reason: are wrong|load_state_dict
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, features) / features**0.5)
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.merged = None

    def forward(self, x):
        if self.merged is None:
            self.merged = torch.cat([self.weight.t(), self.bias[None]]).contiguous()
        return x @ self.merged[:-1] + self.merged[-1]
