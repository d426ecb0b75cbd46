import torch
from torch import nn


class Model(nn.Module):
    """c0 + c1 x + c2 x^2, with coefficients for each column."""

    def __init__(self, columns):
        super().__init__()
        self.c0 = nn.Parameter(torch.randn(columns))
        self.c1 = nn.Parameter(torch.randn(columns))
        self.c2 = nn.Parameter(torch.randn(columns))

    def forward(self, x):
        return self.c0 + self.c1 * x + self.c2 * x * x


rows = 8192
columns = 4096
CPU_SIZES = {"rows": 512, "columns": 2048}


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return [columns]
