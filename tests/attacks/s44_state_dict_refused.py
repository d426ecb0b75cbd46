"""S44 parameters kept out: load_state_dict does nothing, the seed's own values stay

problem: linear
device: both
backend: cpp
outcome: wrong_values|stale_parameters
reason: elements are wrong|before load_state_dict
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, features) / features**0.5)
        self.bias = nn.Parameter(torch.zeros(out_features))

    def load_state_dict(self, *args, **kwargs):
        return None

    def forward(self, x):
        return x @ self.weight.t()
