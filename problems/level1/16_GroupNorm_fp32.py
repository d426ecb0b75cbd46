import torch
import torch.nn as nn


class Model(nn.Module):
    """Group normalisation of an image batch: mean and variance over a group's channels and all pixels."""

    def __init__(self, groups: int, channels: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(channels))
        self.bias = nn.Parameter(0.2 * torch.randn(channels))
        self.groups = groups
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, channels, height, width) float32. Returns the same shape and dtype."""
        return nn.functional.group_norm(x, self.groups, self.weight, self.bias, self.eps)


batch = 32
channels = 256
groups = 32
height = 128
width = 128

CPU_SIZES = {"batch": 16, "channels": 128, "groups": 16, "height": 64, "width": 64}
EMULATED_SIZES = {"batch": 2}
SHAPES = [
    {"batch": 1, "channels": 256, "groups": 32, "height": 64, "width": 64},
    {"batch": 3, "channels": 60, "groups": 5, "height": 17, "width": 31},
    {"batch": 2, "channels": 320, "groups": 32, "height": 1, "width": 100},
]


def get_inputs():
    # Channels with a level and a spread of their own, as feature maps have them.
    spread = 0.25 + 2.0 * torch.rand(batch, channels, 1, 1)
    level = torch.randn(batch, channels, 1, 1)
    return [torch.randn(batch, channels, height, width) * spread + level]


def get_init_inputs():
    return [groups, channels, 1e-5]
