"""S16 one-pass normalisation: variance from sums of squares in single precision

problem: layernorm_far_from_zero
device: both
backend: cpp
outcome: wrong_values
reason: elements are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(hidden)

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        variance = (x * x).mean(dim=-1, keepdim=True) - mean * mean
        normal = (x - mean) * torch.rsqrt(variance.clamp(min=0) + self.norm.eps)
        return normal * self.norm.weight + self.norm.bias
