"""E11 names that take hours: C++ in a string that keeps the reader's parser busy, beside PyTorch's own operator

problem: softmax
device: both
backend: cpp
outcome: not_own
reason: PyTorch|library|own
"""

import torch
import torch.nn as nn

SOURCE = "#include <cstdint>\nint x = " + "a<b>::" * 20_000 + "c;"


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
