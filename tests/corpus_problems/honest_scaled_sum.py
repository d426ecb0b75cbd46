import torch
from torch import nn


class Model(nn.Module):
    """scale * x + shift, with keyword arguments that the inputs leave alone."""

    def forward(self, x, scale=1.5, shift=-0.5):
        return scale * x + shift


rows = 8192
columns = 4096
CPU_SIZES = {"rows": 512, "columns": 2048}


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
