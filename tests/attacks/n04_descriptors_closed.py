"""N04 descriptors closed: everything but standard streams is closed

problem: rowsum
device: both
backend: cpp
outcome: crash|protocol
reason: left|ended|runner
"""

import os

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os.closerange(3, 256)
        return x.sum(dim=-1)
