import torch
import torch.nn as nn


class Model(nn.Module):
    """A linear layer with bias followed by GELU (tanh approximation), all in bfloat16."""

    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        weight = torch.randn(out_features, in_features, dtype=torch.bfloat16)
        self.weight = nn.Parameter(weight / in_features**0.5)
        self.bias = nn.Parameter(0.5 * torch.randn(out_features, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (tokens, in_features) bfloat16. Returns (tokens, out_features) bfloat16."""
        product = nn.functional.linear(x, self.weight, self.bias)
        return nn.functional.gelu(product, approximate="tanh")


tokens = 8192
in_features = 4096
out_features = 8192

CPU_SIZES = {"tokens": 1024, "in_features": 256, "out_features": 1024}
EMULATED_SIZES = {"tokens": 256}
SHAPES = [
    {"tokens": 1},
    {"tokens": 333, "in_features": 501, "out_features": 777},
    {"tokens": 64, "in_features": 1024, "out_features": 3072},
]


def get_inputs():
    return [torch.randn(tokens, in_features, dtype=torch.bfloat16)]


def get_init_inputs():
    return [in_features, out_features]
