import torch
from torch import nn


class Model(nn.Module):
    """Two linear layers with ReLU between them."""

    def __init__(self, width, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))

    def forward(self, x):
        return self.net(x)


tokens = 2048
width = 512
hidden = 1024
CPU_SIZES = {"tokens": 256, "width": 128, "hidden": 256}


def get_inputs():
    return [torch.randn(tokens, width)]


def get_init_inputs():
    return [width, hidden]
