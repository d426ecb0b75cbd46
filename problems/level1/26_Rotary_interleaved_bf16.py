import torch
import torch.nn as nn


class Model(nn.Module):
    """Rotary position embedding, interleaved: elements 2i and 2i + 1 of a head form the rotated pair."""

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        """x: (batch, positions, heads, head_dim); cos, sin: (positions, head_dim / 2); bfloat16."""
        even, odd = x[..., 0::2], x[..., 1::2]
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2)


batch = 8
positions = 4096
heads = 32
head_dim = 128

CPU_SIZES = {"batch": 2, "positions": 512, "heads": 8}
EMULATED_SIZES = {"batch": 2, "positions": 512, "heads": 8}
SHAPES = [
    {"batch": 1, "positions": 1, "heads": 32},
    {"batch": 3, "positions": 777, "heads": 5},
    {"batch": 2, "positions": 500, "heads": 4, "head_dim": 64},
]


def get_inputs():
    x = torch.randn(batch, positions, heads, head_dim, dtype=torch.bfloat16)
    frequency = 1.0 / 10000.0 ** (torch.arange(0, head_dim, 2) / head_dim)
    # The first position is drawn anew for each call, as in a decoder with a cache.
    start = torch.randint(0, 4096, (1, 1))
    angle = (torch.arange(positions).unsqueeze(1) + start) * frequency.unsqueeze(0)
    return [x, angle.cos().to(torch.bfloat16), angle.sin().to(torch.bfloat16)]


def get_init_inputs():
    return []
