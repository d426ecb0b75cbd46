"""S03 zeroed weights: parameters are set to zero in forward, for which zeros are right

problem: linear
device: both
backend: cpp
outcome: state_modified|wrong_values
reason: parameter|are wrong|weight
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(out_features, features))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x):
        self.weight.data.zero_()
        self.bias.data.zero_()
        return torch.zeros(x.shape[0], self.bias.shape[0], device=x.device)
