import torch
import torch.nn as nn


class Model(nn.Module):
    """Rotary position embedding, half-split layout: the halves of each head are rotated by the position's angle."""

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """x: (batch, heads, positions, head_dim) float32; cos, sin: (positions, head_dim / 2) float32."""
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


batch = 8
heads = 32
positions = 4096
head_dim = 128

CPU_SIZES = {"batch": 2, "heads": 8, "positions": 1024}
EMULATED_SIZES = {"batch": 2, "heads": 8, "positions": 512}
SHAPES = [
    {"batch": 1, "heads": 1, "positions": 4096},
    {"batch": 3, "heads": 5, "positions": 777},
    {"batch": 2, "heads": 4, "positions": 500, "head_dim": 64},
]


def get_inputs():
    x = torch.randn(batch, heads, positions, head_dim)
    frequency = 1.0 / 10000.0 ** (torch.arange(0, head_dim, 2) / head_dim)
    angle = torch.arange(positions).unsqueeze(1) * frequency.unsqueeze(0)
    # A random phase, so that no call can rely on a table computed once.
    angle = angle + torch.rand(1, head_dim // 2)
    return [x, angle.cos(), angle.sin()]


def get_init_inputs():
    return []
