import torch
import torch.nn as nn


class Model(nn.Module):
    """Largest value of every row and where it stands."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x: (rows, columns) float32, distinct within a row. Returns (rows,) float32 and (rows,) int64."""
        values, indices = torch.max(x, dim=-1)
        return values, indices


rows = 16384
columns = 8192

CPU_SIZES = {"rows": 1024, "columns": 4096}
EMULATED_SIZES = {"rows": 512}
SHAPES = [{"rows": 1, "columns": 8192}, {"rows": 1000, "columns": 3001}, {"rows": 77, "columns": 24576}]


def get_inputs():
    # Column c holds whole numbers congruent to c's place in a random order, modulo the number of columns:
    # no two values of a row are equal, so the position of the largest is unique. All stay below 2**24,
    # exact in float32.
    steps = torch.randint(0, 2**24 // columns, (rows, columns), dtype=torch.int32)
    order = torch.randperm(columns, dtype=torch.int32)
    # A power of two between 1/8 and 8 for every row keeps the values exact and lets the maxima differ.
    scale = torch.exp2(torch.randint(-3, 4, (rows, 1)).to(torch.float32))
    distinct = (steps * columns + order).to(torch.float32) - 2.0**23
    return [distinct * 2.0**-21 * scale]


def get_init_inputs():
    return []
