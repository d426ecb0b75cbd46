import torch
import torch.nn as nn


class Model(nn.Module):
    """A linear layer whose bias is zero after construction."""

    def __init__(self, features: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, features) / features**0.5)
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, self.weight, self.bias)


batch = 4096
features = 4096
out_features = 4096

CPU_SIZES = {"batch": 256, "features": 384, "out_features": 384}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(batch, features)]


def get_init_inputs() -> list[object]:
    return [features, out_features]
