"""S15 reduced mantissa: operands are rounded to ten bits, as tensor cores do with TF32

problem: matmul
device: both
backend: cpp
outcome: wrong_values
reason: are wrong
"""

import torch
import torch.nn as nn


def rounded(x):
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return rounded(a) @ rounded(b)
