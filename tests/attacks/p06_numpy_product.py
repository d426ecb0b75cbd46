"""P06 library call: NumPy multiplies

problem: matmul
device: cpu
backend: cpp
outcome: not_own|suspect
reason: PyTorch|library|own|thread|traced
"""

import numpy as np
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.from_numpy(np.matmul(a.numpy(), b.numpy()))
