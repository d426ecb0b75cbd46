"""S43 missing bias: it is zero after construction and is never added

problem: linear
device: both
backend: cpp
outcome: wrong_values|stale_parameters
reason: are wrong|load_state_dict
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(out_features, features))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x):
        return x @ self.weight.t()
