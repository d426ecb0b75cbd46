"""S14 truncated work: the last hundredth of the inner dimension is left out

problem: matmul
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        k = a.shape[1] - a.shape[1] // 100
        return a[:, :k] @ b[:k]
