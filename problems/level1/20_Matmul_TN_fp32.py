import torch
import torch.nn as nn


class Model(nn.Module):
    """a.T @ b: the first matrix is stored with the summed dimension outermost."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a: (k, m), b: (k, n), float32. Returns (m, n) float32."""
        return a.T @ b


m = 4096
n = 4096
k = 4096

CPU_SIZES = {"m": 512, "n": 512, "k": 512}
EMULATED_SIZES = {"m": 256, "n": 1024}
SHAPES = [{"m": 1, "n": 512, "k": 512}, {"m": 333, "n": 517, "k": 601}, {"m": 640, "n": 128, "k": 768}]


def get_inputs():
    a = torch.randn(k, m)
    b = torch.randn(k, n)
    return [a, b]


def get_init_inputs():
    return []
