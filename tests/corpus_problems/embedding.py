import torch
import torch.nn as nn


class Model(nn.Module):
    """Rows of a table, looked up by integers."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(words, width))

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding(index, self.table)


words = 65536
width = 1024
count = 262144

CPU_SIZES = {"words": 4096, "width": 256, "count": 4096}


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, words, (count,))]


def get_init_inputs() -> list[object]:
    return [words, width]
