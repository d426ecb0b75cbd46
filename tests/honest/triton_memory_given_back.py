"""unused memory is given back to the driver in every call, before the result gets memory of its own.

problem: honest_sum_and_difference
device: cuda
backend: triton
outcome: fast|slow
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def both_kernel(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    x = tl.load(x_ptr + at, mask=inside)
    y = tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, x + y, mask=inside)
    tl.store(out_ptr + count + at, x - y, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        torch.cuda.empty_cache()
        x, y = x.contiguous(), y.contiguous()
        out = x.new_empty((2, *x.shape))
        both_kernel[(triton.cdiv(x.numel(), 2048),)](x, y, out, x.numel(), BLOCK=2048, num_warps=8)
        return out[0], out[1]
