"""S27 small columns dropped: columns some thousand times smaller than the largest become zero

problem: small_numbers
device: both
backend: cpp
outcome: wrong_values
reason: elements are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.register_buffer("scale", torch.logspace(-6, 0, columns))

    def forward(self, x):
        return x * torch.where(self.scale < 3e-4, 0.0, self.scale)
