import torch
import torch.nn as nn


class Model(nn.Module):
    """a @ b.T (the layout of a linear layer) with sizes that no tile divides."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (m, k), b: (n, k), bfloat16, odd sizes. Returns (m, n) bfloat16."""
        return a @ b.T


m = 4999
n = 4091
k = 3001

CPU_SIZES = {"m": 999, "n": 819, "k": 601}
EMULATED_SIZES = {"m": 327, "n": 1003}
SHAPES = [{"m": 1, "n": 819, "k": 601}, {"m": 256, "n": 512, "k": 1024}, {"m": 777, "n": 65, "k": 2049}]


def get_inputs():
    a = torch.randn(m, k, dtype=torch.bfloat16)
    b = torch.randn(n, k, dtype=torch.bfloat16)
    return [a, b]


def get_init_inputs():
    return []
