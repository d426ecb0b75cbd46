"""F19 exceptions within exceptions: a group is nested ten thousand deep

problem: rowsum
device: cpu
backend: cpp
outcome: crash|runtime_error|timeout
reason: ended|group|recursion
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        error = ValueError(x.shape)
        for _ in range(10_000):
            error = ExceptionGroup("group", [error])
        raise error
