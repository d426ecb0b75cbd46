import torch
import torch.nn as nn


class Model(nn.Module):
    """3x3 convolution of an image batch with bias, stride 1, padding 1."""

    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        weight = torch.randn(out_channels, in_channels, 3, 3, dtype=torch.float16)
        self.weight = nn.Parameter(weight / (9 * in_channels) ** 0.5)
        self.bias = nn.Parameter(0.5 * torch.randn(out_channels, dtype=torch.float16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_channels, height, width) float16. Returns out_channels for in_channels."""
        return nn.functional.conv2d(x, self.weight, self.bias, padding=1)


batch = 128
in_channels = 128
out_channels = 128
height = 56
width = 56

CPU_SIZES = {"batch": 2, "in_channels": 32, "out_channels": 32, "height": 28, "width": 28}
EMULATED_SIZES = {"batch": 2}
SHAPES = [
    {"batch": 1, "in_channels": 64, "out_channels": 64, "height": 56, "width": 56},
    {"batch": 3, "in_channels": 17, "out_channels": 33, "height": 29, "width": 31},
    {"batch": 2, "in_channels": 96, "out_channels": 32, "height": 7, "width": 100},
]


def get_inputs():
    return [torch.randn(batch, in_channels, height, width, dtype=torch.float16)]


def get_init_inputs():
    return [in_channels, out_channels]
