import torch
import torch.nn as nn


class Model(nn.Module):
    """A product whose entries differ in size by many orders of magnitude."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.register_buffer("scale", torch.logspace(-6, 0, columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


rows = 16384
columns = 8192

CPU_SIZES = {"rows": 512, "columns": 2048}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(rows, columns)]


def get_init_inputs() -> list[object]:
    return [columns]
