"""C05 output buffers in turn: four tensors are handed out again and again

problem: rowsum
device: both
backend: cpp
outcome: aliased_output|not_own
reason: memory|earlier|PyTorch|library
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool, self.turn = [], 0

    def forward(self, x):
        if len(self.pool) < 4:
            self.pool.append(torch.empty(x.shape[0], device=x.device))
        self.turn += 1
        return torch.sum(x, dim=-1, out=self.pool[self.turn % len(self.pool)])
