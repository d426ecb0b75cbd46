import torch
import torch.nn as nn


class Model(nn.Module):
    """The k largest values of every row, largest first, and their positions."""

    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x: (rows, columns) float32, distinct in a row. Returns (rows, k) float32 and (rows, k) int64."""
        values, indices = torch.topk(x, self.k, dim=-1, largest=True, sorted=True)
        return values, indices


rows = 4096
columns = 16384
k = 32

CPU_SIZES = {"rows": 512, "columns": 4096, "k": 16}
EMULATED_SIZES = {"rows": 256}
SHAPES = [
    {"rows": 1, "columns": 16384},
    {"rows": 300, "columns": 5003, "k": 7},
    {"rows": 50, "columns": 30000, "k": 64},
]


def get_inputs():
    # Distinct within a row (see the residue modulo the number of columns), whole numbers below 2**24 at
    # first and therefore exact in float32: the positions of the k largest are unique.
    steps = torch.randint(0, 2**24 // columns, (rows, columns), dtype=torch.int32)
    order = torch.randperm(columns, dtype=torch.int32)
    scale = torch.exp2(torch.randint(-3, 4, (rows, 1)).to(torch.float32))
    distinct = (steps * columns + order).to(torch.float32) - 2.0**23
    return [distinct * 2.0**-21 * scale]


def get_init_inputs():
    return [k]
