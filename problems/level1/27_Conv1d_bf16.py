import torch
import torch.nn as nn


class Model(nn.Module):
    """1D convolution over a sequence with bias, stride 1, padded to keep the length."""

    def __init__(self, in_channels: int, out_channels: int, kernel: int):
        super().__init__()
        weight = torch.randn(out_channels, in_channels, kernel, dtype=torch.bfloat16)
        self.weight = nn.Parameter(weight / (in_channels * kernel) ** 0.5)
        self.bias = nn.Parameter(0.5 * torch.randn(out_channels, dtype=torch.bfloat16))
        self.padding = kernel // 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, in_channels, length) bfloat16. Returns (batch, out_channels, length) bfloat16."""
        return nn.functional.conv1d(x, self.weight, self.bias, padding=self.padding)


batch = 64
in_channels = 256
out_channels = 256
length = 4096
kernel = 5

CPU_SIZES = {"batch": 4, "in_channels": 64, "out_channels": 64}
EMULATED_SIZES = {"batch": 2, "length": 512}
SHAPES = [
    {"batch": 1, "in_channels": 64, "out_channels": 64, "length": 4096},
    {"batch": 3, "in_channels": 37, "out_channels": 65, "length": 1001},
    {"batch": 8, "in_channels": 32, "out_channels": 96, "length": 100, "kernel": 3},
]


def get_inputs():
    return [torch.randn(batch, in_channels, length, dtype=torch.bfloat16)]


def get_init_inputs():
    return [in_channels, out_channels, kernel]
