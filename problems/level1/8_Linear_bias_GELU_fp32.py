import torch
import torch.nn as nn


class Model(nn.Module):
    """A linear layer followed by the exact GELU: gelu(x @ weight.T + bias)."""

    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(out_features, in_features) / in_features**0.5)
        self.bias = nn.Parameter(0.1 * torch.randn(out_features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (tokens, in_features) float32. Returns (tokens, out_features) float32."""
        product = x @ self.weight.T + self.bias
        return 0.5 * product * (1.0 + torch.erf(product * 0.7071067811865476))


tokens = 4096
in_features = 4096
out_features = 4096

CPU_SIZES = {"tokens": 256, "in_features": 256, "out_features": 1024}
EMULATED_SIZES = {"tokens": 128}
SHAPES = [
    {"tokens": 1},
    {"tokens": 333, "in_features": 501, "out_features": 517},
    {"tokens": 64, "in_features": 1024, "out_features": 3072},
]


def get_inputs():
    return [torch.randn(tokens, in_features)]


def get_init_inputs():
    return [in_features, out_features]
