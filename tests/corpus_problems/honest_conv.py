import torch
from torch import nn


class Model(nn.Module):
    """A 3x3 convolution with a bias, padded by one."""

    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


batch = 16
channels_in = 32
channels_out = 64
side = 64
CPU_SIZES = {"batch": 2, "channels_in": 16, "channels_out": 16, "side": 32}


def get_inputs():
    return [torch.randn(batch, channels_in, side, side)]


def get_init_inputs():
    return [channels_in, channels_out]
