import torch
import torch.nn as nn


class Model(nn.Module):
    """Softmax over the last dimension of scaled scores plus an additive mask."""

    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale

    def forward(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """scores: (batch, queries, keys) float32; mask: (queries, keys) float32, added to each batch."""
        return torch.softmax(scores * self.scale + mask, dim=-1)


batch = 64
queries = 1024
keys = 2048

CPU_SIZES = {"batch": 4, "queries": 512, "keys": 1024}
EMULATED_SIZES = {"batch": 4, "queries": 256}
SHAPES = [
    {"batch": 1, "queries": 1, "keys": 2048},
    {"batch": 3, "queries": 77, "keys": 1001},
    {"batch": 2, "queries": 512, "keys": 640},
]


def get_inputs():
    scores = torch.randn(batch, queries, keys)
    allowed = torch.arange(keys).unsqueeze(0) <= torch.arange(queries).unsqueeze(1) + (keys - queries)
    mask = torch.zeros(queries, keys).masked_fill(~allowed, -10000.0)
    return [scores, mask]


def get_init_inputs():
    return [0.125]
