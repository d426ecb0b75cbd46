"""S25 integer output left out: the values are right, their places are all zero

problem: argmax
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        values = x.amax(dim=-1)
        return values, torch.zeros(x.shape[0], dtype=torch.int64, device=x.device)
