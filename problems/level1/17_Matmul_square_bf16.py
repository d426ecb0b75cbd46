import torch
import torch.nn as nn


class Model(nn.Module):
    """Product of two square matrices, both row-major."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """a, b: (n, n) bfloat16. Returns (n, n) bfloat16."""
        return a @ b


n = 8192

CPU_SIZES = {"n": 1024}
EMULATED_SIZES = {"n": 1024}
SHAPES = [{"n": 1}, {"n": 333}, {"n": 1200}]


def get_inputs():
    a = torch.randn(n, n, dtype=torch.bfloat16)
    b = torch.randn(n, n, dtype=torch.bfloat16)
    return [a, b]


def get_init_inputs():
    return []
