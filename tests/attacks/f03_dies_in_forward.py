"""F03 dies in forward: memory outside of the tensor is written

problem: rowsum
device: both
backend: cpp
outcome: crash
reason: SIGSEGV|SIGBUS|SIGABRT
"""

import ctypes

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        ctypes.memset(16, 0, 1 << 20)
        return x.sum(dim=-1)
