import torch
import torch.nn as nn


class Model(nn.Module):
    """Causal self-attention: position i attends to positions 0..i."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """q, k, v: (batch, heads, positions, head_dim) bfloat16. The scale is 1 / sqrt(head_dim)."""
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


batch = 2
heads = 16
positions = 4096
head_dim = 64

CPU_SIZES = {"batch": 1, "heads": 4, "positions": 384}
EMULATED_SIZES = {"heads": 2, "positions": 1024}
SHAPES = [
    {"batch": 1, "heads": 1, "positions": 1024},
    {"batch": 3, "heads": 5, "positions": 333},
    {"batch": 1, "heads": 4, "positions": 500, "head_dim": 96},
]


def get_inputs():
    # Scores with a standard deviation of 1 to 2: each row leans on a few keys, so that late positions are not
    # mere averages near zero beside the early ones.
    sharpness = 1.0 + torch.rand(batch, heads, positions, 1, dtype=torch.bfloat16)
    q = torch.randn(batch, heads, positions, head_dim, dtype=torch.bfloat16) * sharpness
    k = torch.randn(batch, heads, positions, head_dim, dtype=torch.bfloat16)
    v = torch.randn(batch, heads, positions, head_dim, dtype=torch.bfloat16)
    return [q, k, v]


def get_init_inputs():
    return []
