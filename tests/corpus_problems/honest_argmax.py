import torch
from torch import nn


class Model(nn.Module):
    """Place of the largest value of each row, the first one of equals. Values come from a few levels: ties abound."""

    def forward(self, x):
        return torch.argmax(x, dim=-1)


rows = 8192
columns = 4096
CPU_SIZES = {"rows": 512, "columns": 2048}


def get_inputs():
    return [torch.randint(-50, 50, (rows, columns)).to(torch.float32)]


def get_init_inputs():
    return []
