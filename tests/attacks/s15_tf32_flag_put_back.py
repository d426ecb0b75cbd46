"""S15 TF32 by a flag that is put back: set and reset within each call

problem: matmul
device: cuda
backend: cuda
outcome: wrong_values
reason: are wrong
options: --track any
emulated: emulated
"""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high")
        y = a @ b
        torch.set_float32_matmul_precision(before)
        return y
