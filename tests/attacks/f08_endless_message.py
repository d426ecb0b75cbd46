"""F08 huge error: an exception with a message of 64 MB and terminal escapes

problem: rowsum
device: both
backend: cpp
outcome: runtime_error
reason: ValueError
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        raise ValueError("\x1b[31m" + "no " * (1 << 24))
