import torch
from torch import nn


class Model(nn.Module):
    """2 x + 1 on a matrix so small that the launch is most of the time."""

    def forward(self, x):
        return 2.0 * x + 1.0


rows = 64
columns = 64
CPU_SIZES = {"rows": 64, "columns": 64}


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
