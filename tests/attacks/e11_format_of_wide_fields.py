"""E11 format of wide fields: a constant that would take 200 MB to fold, beside PyTorch's own operator

problem: softmax
device: both
backend: cpp
outcome: not_own
reason: PyTorch|library|own
"""

import torch
import torch.nn as nn


def wide():
    return ("{:9999}" * 20_000).format(*("a",) * 20_000)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
