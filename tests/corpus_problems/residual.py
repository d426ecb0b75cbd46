import torch
import torch.nn as nn


class Model(nn.Module):
    """The input plus a small correction."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1e-2 * torch.tanh(self.gain * x)


rows = 16384
columns = 8192

CPU_SIZES = {"rows": 512, "columns": 2048}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return [columns]
