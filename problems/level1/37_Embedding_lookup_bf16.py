import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows of a table picked by token, plus a learned vector for the token's position."""

    def __init__(self, vocabulary: int, positions: int, hidden: int):
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocabulary, hidden, dtype=torch.bfloat16))
        self.position = nn.Parameter(0.5 * torch.randn(positions, hidden, dtype=torch.bfloat16))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """tokens: (batch, positions) int64. Returns (batch, positions, hidden) bfloat16."""
        return nn.functional.embedding(tokens, self.table) + self.position


vocabulary = 65536
hidden = 4096
batch = 16
positions = 2048

CPU_SIZES = {"vocabulary": 8192, "hidden": 2048, "batch": 8, "positions": 512}
EMULATED_SIZES = {"vocabulary": 8192, "batch": 2, "positions": 512}
SHAPES = [
    {"vocabulary": 8192, "batch": 1, "positions": 1},
    {"vocabulary": 5003, "hidden": 1001, "batch": 3, "positions": 77},
    {"vocabulary": 50257, "hidden": 96, "batch": 4, "positions": 1000},
]


def get_inputs():
    return [torch.randint(0, vocabulary, (batch, positions))]


def get_init_inputs():
    return [vocabulary, positions, hidden]
