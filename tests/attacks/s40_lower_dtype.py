"""S40 lower dtype: half the bytes are written

problem: scale
device: both
backend: cpp
outcome: wrong_dtype
reason: dtype
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return (2.0 * x + 1.0).half()
