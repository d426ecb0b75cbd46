"""PyTorch transposes the weight anew in each call; the product is a kernel's.

problem: linear
device: emulated
backend: triton
outcome: emulated
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def product(x, weight, bias, y, features, columns, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    total = tl.load(bias + column, mask=inside, other=0.0)
    for k in range(features):
        total += tl.load(x + row * features + k) * tl.load(weight + k * columns + column, mask=inside, other=0.0)
    tl.store(y + row * columns + column, total, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(out_features, features))
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x):
        weight, out = self.weight.t().contiguous(), torch.empty(x.shape[0], self.bias.numel(), device=x.device)
        grid = out.shape[0], triton.cdiv(out.shape[1], 256)
        product[grid](x, weight, self.bias, out, x.shape[1], out.shape[1], BLOCK=256)
        return out
