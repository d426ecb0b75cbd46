"""a bool input, read as it is.

problem: honest_select
device: cuda
backend: triton
outcome: fast|slow
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def select_kernel(mask_ptr, x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    chosen = tl.load(mask_ptr + at, mask=inside, other=0) != 0
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    y = tl.load(y_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + at, tl.where(chosen, x, -y), mask=inside)


class ModelNew(nn.Module):
    def forward(self, mask, x, y):
        mask, x, y = mask.contiguous(), x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        select_kernel[(triton.cdiv(x.numel(), 1024),)](mask, x, y, out, x.numel(), BLOCK=1024)
        return out
