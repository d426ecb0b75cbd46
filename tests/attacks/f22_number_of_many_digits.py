"""F22 a number that nobody writes: an integer of a hundred thousand digits is returned

problem: rowsum
device: cpu
backend: cpp
outcome: crash|wrong_type|runtime_error
reason: left
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return 1 << 400_000
