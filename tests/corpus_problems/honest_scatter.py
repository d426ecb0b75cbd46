import torch
from torch import nn


class Model(nn.Module):
    """Adds each row of x to the row of the result that its index names."""

    def __init__(self, bins):
        super().__init__()
        self.bins = bins

    def forward(self, index, x):
        return x.new_zeros(self.bins, x.shape[1]).index_add(0, index, x)


bins = 1024
rows = 32768
columns = 256
CPU_SIZES = {"bins": 64, "rows": 4096, "columns": 256}


def get_inputs():
    return [torch.randint(0, bins, (rows,)), torch.randn(rows, columns)]


def get_init_inputs():
    return [bins]
