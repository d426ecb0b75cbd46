import torch
import torch.nn as nn


class Model(nn.Module):
    """Mean over overlapping windows of a sequence; windows at the ends count only what lies inside."""

    def __init__(self, kernel: int, stride: int, padding: int):
        super().__init__()
        self.pool = nn.AvgPool1d(kernel, stride=stride, padding=padding, count_include_pad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, channels, length) float16. Returns (batch, channels, outputs) float16.

        outputs = (length + 2 * padding - kernel) // stride + 1
        """
        return self.pool(x)


batch = 64
channels = 512
length = 8192

CPU_SIZES = {"batch": 8, "channels": 64, "length": 2048}
EMULATED_SIZES = {"batch": 2}
SHAPES = [
    {"batch": 1, "channels": 64, "length": 8192},
    {"batch": 3, "channels": 33, "length": 1001},
    {"batch": 8, "channels": 300, "length": 100},
]


def get_inputs():
    return [torch.randn(batch, channels, length, dtype=torch.float16)]


def get_init_inputs():
    return [8, 3, 4]
