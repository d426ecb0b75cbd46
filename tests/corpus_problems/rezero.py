import torch
import torch.nn as nn


class Model(nn.Module):
    """A residual with a gate that training opens: x + alpha z, where alpha begins as 0."""

    def __init__(self) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return x + self.alpha * z


rows = 8192
columns = 4096

CPU_SIZES = {"rows": 256, "columns": 2048}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
