"""H01 exit code: the process leaves at once with code 0

problem: rowsum
device: both
backend: cpp
outcome: crash
reason: left
"""

import os

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        os._exit(0)
