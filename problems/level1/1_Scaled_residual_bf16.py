import torch
import torch.nn as nn


class Model(nn.Module):
    """Adds a scaled branch to the residual stream and clamps the result: clamp(x + alpha * y, -limit, limit)."""

    def __init__(self, alpha: float, limit: float):
        super().__init__()
        self.alpha = alpha
        self.limit = limit

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """x, y: (rows, columns) bfloat16. Returns the same shape and dtype."""
        return torch.clamp(x + self.alpha * y, -self.limit, self.limit)


rows = 16384
columns = 8192

CPU_SIZES = {"rows": 1024, "columns": 4096}
EMULATED_SIZES = {"rows": 512}
SHAPES = [{"rows": 1, "columns": 8192}, {"rows": 1000, "columns": 3001}, {"rows": 77, "columns": 24576}]


def get_inputs():
    x = torch.randn(rows, columns, dtype=torch.bfloat16)
    y = torch.randn(rows, columns, dtype=torch.bfloat16)
    return [x, y]


def get_init_inputs():
    return [0.7, 2.5]
