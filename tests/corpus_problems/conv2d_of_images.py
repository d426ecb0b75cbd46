import torch
import torch.nn as nn


class Model(nn.Module):
    """A 3x3 convolution with padding 1 and no bias, large enough to be sampled on a CPU that has other work."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


batch = 32
channels = 128
size = 128

CPU_SIZES = {"batch": 4, "channels": 64, "size": 64}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs() -> list[object]:
    return [channels]
