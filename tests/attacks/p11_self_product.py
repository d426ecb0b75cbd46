"""P11 another product: the first matrix is multiplied with itself

problem: matmul
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return a @ a
