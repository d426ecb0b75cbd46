"""S42 wrong type: a Python number is returned in place of a tensor

problem: mse_loss
device: both
backend: cpp
outcome: wrong_type
reason: type
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ((a - b) ** 2).mean().item()
