"""S10 a copy of the input is returned: the correction is left out

problem: residual
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
        self.gain = nn.Parameter(torch.ones(columns))

    def forward(self, x):
        return x.clone()
