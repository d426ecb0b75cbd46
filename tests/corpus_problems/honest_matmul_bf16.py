import torch
from torch import nn


class Model(nn.Module):
    """a @ b in bfloat16."""

    def forward(self, a, b):
        return a @ b


m = 2048
n = 2048
k = 1024
CPU_SIZES = {"m": 256, "n": 256, "k": 256}


def get_inputs():
    return [torch.randn(m, k, dtype=torch.bfloat16), torch.randn(k, n, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
