import torch
from torch import nn


class Model(nn.Module):
    """A linear layer with a bias."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)

    def forward(self, x):
        return self.linear(x)


tokens = 2048
in_features = 1024
out_features = 1024
CPU_SIZES = {"tokens": 256, "in_features": 256, "out_features": 256}


def get_inputs():
    return [torch.randn(tokens, in_features)]


def get_init_inputs():
    return [in_features, out_features]
