"""S27 small numbers rough: small entries are wrong by a factor of two

problem: small_numbers
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.register_buffer("scale", torch.logspace(-6, 0, columns))

    def forward(self, x):
        return x * torch.where(self.scale < 1e-5, 2 * self.scale, self.scale)
