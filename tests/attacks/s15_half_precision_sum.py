"""S15 low precision: the running sum is kept in half precision

problem: cumsum
device: both
backend: cpp
outcome: wrong_values|not_finite
reason: are wrong|NaN
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.cumsum(x.bfloat16(), dim=-1).float()
