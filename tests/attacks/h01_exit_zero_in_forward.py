"""H01 exit code: the process ends successfully before anything is compared

problem: rowsum
device: both
backend: cpp
outcome: crash|runtime_error
reason: left|exit
"""

import sys

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        sys.exit(0)
