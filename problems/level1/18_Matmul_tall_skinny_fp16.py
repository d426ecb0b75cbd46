import torch
import torch.nn as nn


class Model(nn.Module):
    """A very tall matrix times a narrow one: bound by reading the tall one."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (m, k), b: (k, n), float16, m much larger than n. Returns (m, n) float16."""
        return a @ b


m = 262144
k = 2048
n = 64

CPU_SIZES = {"m": 1024, "k": 512}
EMULATED_SIZES = {"m": 2048}
SHAPES = [{"m": 1, "k": 2048}, {"m": 3001, "k": 333, "n": 37}, {"m": 1000, "k": 512, "n": 128}]


def get_inputs():
    a = torch.randn(m, k, dtype=torch.float16)
    b = torch.randn(k, n, dtype=torch.float16)
    return [a, b]


def get_init_inputs():
    return []
