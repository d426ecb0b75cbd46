import torch
import torch.nn as nn


class Model(nn.Module):
    """GELU (tanh form) of half precision numbers; small, for an emulated GPU."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x, approximate="tanh")


rows = 16384
columns = 8192

CPU_SIZES = {"rows": 32, "columns": 1024}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=torch.float16)]


def get_init_inputs() -> list[object]:
    return []
