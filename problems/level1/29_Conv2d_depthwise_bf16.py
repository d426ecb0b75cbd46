import torch
import torch.nn as nn


class Model(nn.Module):
    """Depthwise 5x5 convolution: each channel has a filter of its own; stride 1, padding 2, with bias."""

    def __init__(self, channels: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, 5, 5, dtype=torch.bfloat16) / 5.0)
        self.bias = nn.Parameter(0.5 * torch.randn(channels, dtype=torch.bfloat16))
        self.channels = channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, channels, height, width) bfloat16. Returns the same shape and dtype."""
        return nn.functional.conv2d(x, self.weight, self.bias, padding=2, groups=self.channels)


batch = 64
channels = 256
height = 112
width = 112

CPU_SIZES = {"batch": 8, "channels": 64, "height": 56, "width": 56}
EMULATED_SIZES = {"batch": 2}
SHAPES = [
    {"batch": 1, "channels": 64, "height": 112, "width": 112},
    {"batch": 3, "channels": 33, "height": 57, "width": 61},
    {"batch": 8, "channels": 96, "height": 7, "width": 100},
]


def get_inputs():
    return [torch.randn(batch, channels, height, width, dtype=torch.bfloat16)]


def get_init_inputs():
    return [channels]
