"""F04 prints without end: a gigabyte goes to standard output

problem: rowsum
device: cpu
backend: cpp
outcome: limit
reason: printed more than it may
"""

import os

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        block = b"x" * (1 << 20)
        for _ in range(1100):
            os.write(1, block)

    def forward(self, x):
        return x.sum(dim=-1)
