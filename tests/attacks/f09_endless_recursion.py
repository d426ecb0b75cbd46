"""F09 recursion: forward calls itself without end

problem: rowsum
device: both
backend: cpp
outcome: runtime_error|crash
reason: RecursionError|SIGSEGV
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return self.forward(x)
