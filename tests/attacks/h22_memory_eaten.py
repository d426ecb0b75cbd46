"""H22 memory eaten: the process takes 8 GiB

problem: rowsum
device: cpu
backend: cpp
outcome: out_of_memory
reason: memory
options: --memory-gib 2
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        self.hoard = [torch.ones(1 << 26) for _ in range(32)]
        return x.sum(dim=-1)
