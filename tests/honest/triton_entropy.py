"""-x log x, element by element, 0 at 0.

problem: entropy
device: cuda
backend: triton
outcome: fast|slow
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def entropy(x, y, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + place, mask=place < count, other=1.0)
    result = -value * tl.log(value)
    result = tl.where(value == 0.0, 0.0, result)
    result = tl.where(value < 0.0, float("-inf"), result)
    tl.store(y + place, result, mask=place < count)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        entropy[(triton.cdiv(x.numel(), 2048),)](x, y, x.numel(), BLOCK=2048, num_warps=8)
        return y
