"""S12 expected value: the loss of uniform numbers is a sixth

problem: mse_loss
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.full((), 1.0 / 6.0, device=a.device)
