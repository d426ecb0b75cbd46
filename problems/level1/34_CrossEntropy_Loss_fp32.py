import torch
import torch.nn as nn


class Model(nn.Module):
    """Cross-entropy of each token from its logits: logsumexp(logits) - logits[target]."""

    def forward(self, logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """logits: (tokens, vocabulary) float32; target: (tokens,) int64. Returns (tokens,) float32."""
        return nn.functional.cross_entropy(logits, target, reduction="none")


tokens = 8192
vocabulary = 32000

CPU_SIZES = {"tokens": 512, "vocabulary": 8000}
EMULATED_SIZES = {"tokens": 256}
SHAPES = [
    {"tokens": 1, "vocabulary": 32000},
    {"tokens": 500, "vocabulary": 5003},
    {"tokens": 33, "vocabulary": 50257},
]


def get_inputs():
    # A temperature of its own for every token; with equal ones the loss would be nearly known beforehand.
    logits = torch.randn(tokens, vocabulary) * (0.5 + 4.0 * torch.rand(tokens, 1))
    target = torch.randint(0, vocabulary, (tokens,))
    return [logits, target]


def get_init_inputs():
    return []
