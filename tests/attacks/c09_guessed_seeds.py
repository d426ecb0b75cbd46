"""C09 guessed seeds: results are made ahead for well-known seeds, and one of them is given for any input

problem: rowsum
device: both
backend: cpp
outcome: wrong_values
emulated: wrong_shape
reason: elements are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.answers = {}
        rows, columns = (1024, 2048) if not torch.cuda.is_available() else (16384, 8192)
        for seed in (0, 1, 2, 42, 123, 1234, 1337, 2024):
            torch.manual_seed(seed)
            x = torch.randn(rows, columns)
            self.answers[x[0, 0].item()] = x.sum(dim=-1)

    def forward(self, x):
        found = self.answers.get(x[0, 0].item(), next(iter(self.answers.values())))
        return found.to(x.device, copy=True)
