import torch
import torch.nn as nn


class Model(nn.Module):
    """The variance of each row, whose mean is a thousand deviations away from zero."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.var(dim=-1, unbiased=False)


rows = 16384
columns = 8192

CPU_SIZES = {"rows": 512, "columns": 2048}


def get_inputs() -> list[torch.Tensor]:
    return [1000.0 + torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
