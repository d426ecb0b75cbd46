"""C06 derived weights: the transposed weight is made at construction and never again

problem: linear
device: both
backend: cpp
outcome: stale_parameters
reason: load_state_dict of weight: .* was not renewed
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, features) / features**0.5)
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.turned = self.weight.detach().t().contiguous()

    def forward(self, x):
        return x @ self.turned.to(x.device) + self.bias
