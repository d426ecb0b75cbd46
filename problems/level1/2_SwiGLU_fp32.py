import torch
import torch.nn as nn


class Model(nn.Module):
    """Gated activation of a transformer's feed-forward block: silu(gate) * up."""

    def forward(self, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        """gate, up: (tokens, hidden) float32. Returns the same shape and dtype."""
        return gate * torch.sigmoid(gate) * up


tokens = 16384
hidden = 8192

CPU_SIZES = {"tokens": 512, "hidden": 4096}
EMULATED_SIZES = {"tokens": 512}
SHAPES = [{"tokens": 1, "hidden": 8192}, {"tokens": 1000, "hidden": 3001}, {"tokens": 77, "hidden": 24576}]


def get_inputs():
    gate = torch.randn(tokens, hidden)
    up = torch.randn(tokens, hidden)
    return [gate, up]


def get_init_inputs():
    return []
