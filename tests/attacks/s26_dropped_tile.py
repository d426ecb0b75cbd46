"""S26 mismatch budget: one tile of four thousand is not computed

problem: matmul
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        out = a @ b
        out[-6:, -6:] = 0
        return out
