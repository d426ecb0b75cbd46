"""C09 seed of the process: inputs are made again from torch's initial seed

problem: rowsum
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        generator = torch.Generator(x.device).manual_seed(torch.initial_seed())
        return torch.randn(x.shape, generator=generator, device=x.device).sum(dim=-1)
