import torch
import torch.nn as nn


class Model(nn.Module):
    """Causal attention with grouped queries: a head of keys and values serves several query heads."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """q: (batch, query_heads, positions, head_dim), k, v: the same with kv_heads; bfloat16.

        Query head h uses key and value head h // (query_heads / kv_heads). Returns q's shape and dtype.
        """
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


batch = 4
query_heads = 32
kv_heads = 8
positions = 2048
head_dim = 128

CPU_SIZES = {"batch": 1, "query_heads": 8, "kv_heads": 2, "positions": 384, "head_dim": 64}
EMULATED_SIZES = {"batch": 2, "query_heads": 8, "kv_heads": 2, "positions": 512}
SHAPES = [
    {"batch": 1, "query_heads": 4, "kv_heads": 1, "positions": 512},
    {"batch": 3, "query_heads": 6, "kv_heads": 3, "positions": 333},
    {"batch": 1, "query_heads": 8, "kv_heads": 8, "positions": 500, "head_dim": 96},
]


def get_inputs():
    # Scores with a standard deviation of 1 to 2: each row leans on a few keys, so that late positions are not
    # mere averages near zero beside the early ones.
    sharpness = 1.0 + torch.rand(batch, query_heads, positions, 1, dtype=torch.bfloat16)
    q = torch.randn(batch, query_heads, positions, head_dim, dtype=torch.bfloat16) * sharpness
    k = torch.randn(batch, kv_heads, positions, head_dim, dtype=torch.bfloat16)
    v = torch.randn(batch, kv_heads, positions, head_dim, dtype=torch.bfloat16)
    return [q, k, v]


def get_init_inputs():
    return []
