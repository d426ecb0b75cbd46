"""P04 fallback: the own kernel fails, PyTorch answers in the except branch

problem: rowsum
device: cpu
backend: cpp
outcome: not_own
reason: PyTorch|library|own
"""

import ctypes

import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        try:
            self.kernel = ctypes.CDLL("./kernel_that_was_never_built.so").rowsum
        except OSError:
            self.kernel = None

    def forward(self, x):
        try:
            return self.kernel(x)
        except TypeError:
            return x.sum(dim=-1)
