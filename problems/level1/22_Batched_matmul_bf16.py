import torch
import torch.nn as nn


class Model(nn.Module):
    """One matrix product for every member of a batch."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (batch, m, k), b: (batch, k, n), bfloat16. Returns (batch, m, n) bfloat16."""
        return torch.bmm(a, b)


batch = 128
m = 1024
n = 1024
k = 512

CPU_SIZES = {"batch": 32, "m": 256, "n": 256, "k": 256}
EMULATED_SIZES = {"batch": 2}
SHAPES = [
    {"batch": 1, "m": 512, "n": 512, "k": 512},
    {"batch": 7, "m": 77, "n": 129, "k": 65},
    {"batch": 3, "m": 1, "n": 1024, "k": 512},
]


def get_inputs():
    a = torch.randn(batch, m, k, dtype=torch.bfloat16)
    b = torch.randn(batch, k, n, dtype=torch.bfloat16)
    return [a, b]


def get_init_inputs():
    return []
