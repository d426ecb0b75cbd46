import torch
from torch import nn


class Model(nn.Module):
    """Matrix times vector in float16."""

    def forward(self, matrix, vector):
        return torch.mv(matrix, vector)


rows = 8192
columns = 4096
CPU_SIZES = {"rows": 512, "columns": 2048}


def get_inputs():
    return [torch.randn(rows, columns, dtype=torch.float16), torch.randn(columns, dtype=torch.float16)]


def get_init_inputs():
    return []
