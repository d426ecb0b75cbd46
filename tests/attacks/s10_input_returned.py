"""S10 the input is returned: it differs from the output by a hundredth

problem: residual
device: both
backend: cpp
outcome: aliased_output|wrong_values
reason: memory|are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(columns))

    def forward(self, x):
        return x
