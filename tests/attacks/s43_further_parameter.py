"""S43 parameters: a further one holds the transposed weight, which KernelBench would allow

problem: linear
device: both
backend: cpp
outcome: wrong_parameters
reason: parameter turned
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, features) / features**0.5)
        self.bias = nn.Parameter(torch.zeros(out_features))
        self.turned = nn.Parameter(self.weight.detach().t().flatten().clone(), requires_grad=False)

    def forward(self, x):
        return x @ self.turned.view(self.weight.shape[1], -1) + self.bias
