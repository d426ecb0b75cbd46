import torch
import torch.nn as nn


class Model(nn.Module):
    """Adds a residual and normalises the sum; returns both, as a pre-norm transformer block needs."""

    def __init__(self, hidden: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.1 * torch.randn(hidden))
        self.bias = nn.Parameter(0.1 * torch.randn(hidden))
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x, residual: (tokens, hidden) float32. Returns (normalised, x + residual)."""
        total = x + residual
        mean = total.mean(dim=-1, keepdim=True)
        variance = (total - mean).pow(2).mean(dim=-1, keepdim=True)
        normalised = (total - mean) * torch.rsqrt(variance + self.eps) * self.weight + self.bias
        return normalised, total


tokens = 16384
hidden = 4096

CPU_SIZES = {"tokens": 512}
EMULATED_SIZES = {"tokens": 512}
SHAPES = [{"tokens": 1, "hidden": 8192}, {"tokens": 1000, "hidden": 3001}, {"tokens": 77, "hidden": 24576}]


def get_inputs():
    # Rows of different magnitude and offset: without the normalisation the result is far off.
    scale = 0.25 + 4.0 * torch.rand(tokens, 1)
    offset = torch.randn(tokens, 1)
    return [scale * torch.randn(tokens, hidden) + offset, scale * torch.randn(tokens, hidden)]


def get_init_inputs():
    return [hidden, 1e-5]
