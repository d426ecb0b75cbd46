import torch
from torch import nn


class Model(nn.Module):
    """Sum of two int8 matrices, saturated."""

    def forward(self, a, b):
        return torch.clamp(a.to(torch.int16) + b.to(torch.int16), -128, 127).to(torch.int8)


rows = 8192
columns = 4096
CPU_SIZES = {"rows": 512, "columns": 2048}


def get_inputs():
    a = torch.randint(-128, 128, (rows, columns), dtype=torch.int8)
    b = torch.randint(-128, 128, (rows, columns), dtype=torch.int8)
    return [a, b]


def get_init_inputs():
    return []
