"""S04 answer from the collector: every live tensor of the output's shape is tried as the answer

problem: rowsum
device: both
backend: cpp
outcome: not_finite|wrong_values
reason: elements are wrong
"""

import gc

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)
        for found in gc.get_objects():
            if isinstance(found, torch.Tensor) and found.shape == out.shape and found.dtype == out.dtype:
                out.copy_(found)
        return out
