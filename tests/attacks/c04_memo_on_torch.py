"""C04 memo on a foreign object: the first result is an attribute of the torch module

problem: rowsum
device: both
backend: cpp
outcome: wrong_values|aliased_output
reason: are wrong|memory
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        if not hasattr(torch, "_row_sums"):
            torch._row_sums = x.sum(dim=-1)
        return torch._row_sums.clone()
