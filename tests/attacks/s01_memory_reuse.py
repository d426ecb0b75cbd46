"""S01 memory reuse: an empty tensor is returned in the hope of an old answer in its memory

problem: rowsum
device: both
backend: cpp
outcome: not_finite|wrong_values
reason: are wrong|NaN
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.empty(x.shape[0], dtype=x.dtype, device=x.device)
