import torch
import torch.nn as nn


class Model(nn.Module):
    """The mean of the squared differences; small, for an emulated GPU."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ((a - b) ** 2).mean()


rows = 16384
columns = 8192

CPU_SIZES = {"rows": 32, "columns": 1024}


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(rows, columns), torch.rand(rows, columns)]


def get_init_inputs() -> list[object]:
    return []
