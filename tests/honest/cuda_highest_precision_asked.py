"""highest precision: the flags are set to what they should be around a product of PyTorch's, and put back.

problem: matmul
device: cuda
backend: cuda
outcome: fast|slow
options: --track any
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        y = a @ b
        torch.set_float32_matmul_precision(before)
        return y
