import torch
import torch.nn as nn


class Model(nn.Module):
    """The product of two matrices."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


m = 4096
k = 4096
n = 4096

CPU_SIZES = {"m": 384, "k": 384, "n": 384}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs() -> list[object]:
    return []
