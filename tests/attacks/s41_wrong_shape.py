"""S41 wrong shape: a dimension of one is kept, which broadcasts in a careless comparison

problem: rowsum
device: both
backend: cpp
outcome: wrong_shape
reason: shape
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1, keepdim=True)
