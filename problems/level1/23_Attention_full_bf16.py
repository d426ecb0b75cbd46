import torch
import torch.nn as nn


class Model(nn.Module):
    """Attention without a mask, written out: softmax(q @ k.T * scale) @ v."""

    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """q, k, v: (batch, heads, positions, head_dim) bfloat16. Returns the same shape and dtype."""
        scores = (q * self.scale) @ k.transpose(-2, -1)
        return torch.softmax(scores, dim=-1) @ v


batch = 4
heads = 16
positions = 2048
head_dim = 128

CPU_SIZES = {"batch": 1, "heads": 8, "positions": 512, "head_dim": 64}
EMULATED_SIZES = {"batch": 2, "heads": 2, "positions": 512}
SHAPES = [
    {"batch": 1, "heads": 1, "positions": 1024},
    {"batch": 3, "heads": 5, "positions": 333},
    {"batch": 1, "heads": 4, "positions": 500, "head_dim": 96},
]


def get_inputs():
    # Queries of different length make sharper and flatter rows of attention; the scores stay small enough
    # that their rounding to bfloat16 does not drown the result.
    sharpness = 0.25 + 0.25 * torch.rand(batch, heads, positions, 1, dtype=torch.bfloat16)
    q = torch.randn(batch, heads, positions, head_dim, dtype=torch.bfloat16) * sharpness
    k = torch.randn(batch, heads, positions, head_dim, dtype=torch.bfloat16)
    v = torch.randn(batch, heads, positions, head_dim, dtype=torch.bfloat16)
    return [q, k, v]


def get_init_inputs():
    return [head_dim**-0.5]
