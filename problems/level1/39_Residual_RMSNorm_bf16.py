import torch
import torch.nn as nn


class Model(nn.Module):
    """Adds a residual and normalises the sum by its root mean square; returns both."""

    def __init__(self, hidden: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.2 * torch.randn(hidden, dtype=torch.bfloat16))
        self.hidden = hidden
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x, residual: (tokens, hidden) bfloat16. Returns (normalised, x + residual)."""
        total = x + residual
        return nn.functional.rms_norm(total, (self.hidden,), self.weight, self.eps), total


tokens = 16384
hidden = 8192

CPU_SIZES = {"tokens": 512, "hidden": 4096}
EMULATED_SIZES = {"tokens": 512}
SHAPES = [{"tokens": 1, "hidden": 8192}, {"tokens": 1000, "hidden": 3001}, {"tokens": 77, "hidden": 24576}]


def get_inputs():
    # The residual stream grows along a network: tokens differ in size.
    x = torch.randn(tokens, hidden, dtype=torch.bfloat16)
    residual = torch.randn(tokens, hidden, dtype=torch.bfloat16)
    return [x, residual * (4.0 * torch.rand(tokens, 1, dtype=torch.bfloat16))]


def get_init_inputs():
    return [hidden, 1e-6]
