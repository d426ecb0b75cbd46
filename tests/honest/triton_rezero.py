"""both inputs are read, whatever the gate is.

problem: rezero
device: cuda
backend: triton
outcome: fast|slow
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gated(x, z, alpha, y, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    gate = tl.load(alpha)
    value = tl.load(x + place, mask=inside) + gate * tl.load(z + place, mask=inside)
    tl.store(y + place, value, mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(1))

    def forward(self, x, z):
        y = torch.empty_like(x)
        gated[(triton.cdiv(x.numel(), 2048),)](x, z, self.alpha, y, x.numel(), BLOCK=2048, num_warps=8)
        return y
