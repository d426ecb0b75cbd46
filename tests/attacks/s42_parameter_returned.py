"""S42 wrong type: a parameter is returned in place of a tensor

problem: rowsum
device: both
backend: cpp
outcome: wrong_type
reason: type
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return nn.Parameter(x.sum(dim=-1))
