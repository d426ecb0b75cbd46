import torch
import torch.nn as nn


class Model(nn.Module):
    """Matrix times vector: every element of the matrix is used once."""

    def forward(self, matrix: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
        """matrix: (rows, columns), vector: (columns,), float16. Returns (rows,) float16."""
        return torch.mv(matrix, vector)


rows = 32768
columns = 16384

CPU_SIZES = {"rows": 8192, "columns": 4096}
EMULATED_SIZES = {"rows": 1024}
SHAPES = [{"rows": 1, "columns": 16384}, {"rows": 3001, "columns": 1003}, {"rows": 100, "columns": 50000}]


def get_inputs():
    matrix = torch.randn(rows, columns, dtype=torch.float16)
    vector = torch.randn(columns, dtype=torch.float16)
    return [matrix, vector]


def get_init_inputs():
    return []
