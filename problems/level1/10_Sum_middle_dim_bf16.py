import torch
import torch.nn as nn


class Model(nn.Module):
    """Sums the middle dimension away: the addends of one output lie far apart in memory."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, length, channels) bfloat16. Returns (batch, channels) bfloat16."""
        return x.sum(dim=1)


batch = 64
length = 2048
channels = 4096

CPU_SIZES = {"batch": 16, "length": 1024, "channels": 1024}
EMULATED_SIZES = {"batch": 4}
SHAPES = [
    {"batch": 1, "length": 4096, "channels": 1024},
    {"batch": 3, "length": 1001, "channels": 777},
    {"batch": 200, "length": 33, "channels": 512},
]


def get_inputs():
    return [torch.randn(batch, length, channels, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
