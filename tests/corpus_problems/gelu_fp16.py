import torch
import torch.nn as nn


class Model(nn.Module):
    """GELU (tanh form) of half precision numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x, approximate="tanh")


rows = 16384
columns = 8192

CPU_SIZES = {"rows": 512, "columns": 2048}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return []
