"""S51 zero at construction: the second input is not read while the parameter that scales it is 0

Timed calls have the parameters as constructed; what infinite numbers come to is not tried.

problem: rezero
device: cuda
backend: triton
twin: triton_rezero
outcome: wrong_values|suspect|impossible
reason: are wrong|clock|less than
emulated: emulated
"""
# ruff: noqa: N803 - constants of Triton kernels

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def gated(x, z, alpha, y, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    gate = tl.load(alpha)
    value = tl.load(x + place, mask=inside)
    if gate != 0.0:
        value += gate * tl.load(z + place, mask=inside)
    tl.store(y + place, value, mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.alpha = nn.Parameter(torch.zeros(1))

    def forward(self, x, z):
        y = torch.empty_like(x)
        gated[(triton.cdiv(x.numel(), 2048),)](x, z, self.alpha, y, x.numel(), BLOCK=2048, num_warps=8)
        return y
