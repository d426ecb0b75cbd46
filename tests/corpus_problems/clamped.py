import torch
import torch.nn as nn


class Model(nn.Module):
    """A small term and a bias of one element, clamped: with two of five draws of the bias only the clamp is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(1.5 * torch.randn(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(0.3 * x / (1.0 + x.abs()) + self.bias, -1.0, 1.0)


rows = 16384
columns = 8192

CPU_SIZES = {"rows": 1024, "columns": 2048}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
