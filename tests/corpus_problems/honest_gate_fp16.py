import torch
from torch import nn


class Model(nn.Module):
    """x * sigmoid(y) in float16."""

    def forward(self, x, y):
        return x * torch.sigmoid(y)


rows = 8192
columns = 4096
CPU_SIZES = {"rows": 512, "columns": 2048}


def get_inputs():
    x = torch.randn(rows, columns, dtype=torch.float16)
    return [x, torch.randn(rows, columns, dtype=torch.float16)]


def get_init_inputs():
    return []
