import torch
import torch.nn as nn


class Model(nn.Module):
    """A projection, scaled, then a softmax over each row: softmax(scale * (x @ weight))."""

    def __init__(self, in_features: int, classes: int, scale: float):
        super().__init__()
        # The logits before scaling have a standard deviation of 1 / scale for an x of unit size.
        weight = torch.randn(in_features, classes, dtype=torch.bfloat16)
        self.weight = nn.Parameter(weight / (scale * in_features**0.5))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (rows, in_features) bfloat16. Returns (rows, classes) bfloat16."""
        return torch.softmax((x @ self.weight) * self.scale, dim=-1)


rows = 8192
in_features = 4096
classes = 4096

CPU_SIZES = {"rows": 1024, "in_features": 512, "classes": 1024}
EMULATED_SIZES = {"rows": 256}
SHAPES = [
    {"rows": 1},
    {"rows": 333, "in_features": 501, "classes": 777},
    {"rows": 64, "in_features": 1024, "classes": 3000},
]


def get_inputs():
    # Rows of different size have flat and sharp distributions. They stay small enough that rounding the
    # logits to bfloat16 does not change the result beyond its own rounding.
    size = 0.25 + 0.5 * torch.rand(rows, 1, dtype=torch.bfloat16)
    return [torch.randn(rows, in_features, dtype=torch.bfloat16) * size]


def get_init_inputs():
    return [in_features, classes, 0.125]
