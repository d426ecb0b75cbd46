"""a loop over blocks of a row with running maximum and sum; try/except around an optional import.

problem: honest_softmax
device: cuda
backend: triton
outcome: fast|slow
"""

import torch
import triton
import triton.language as tl
from torch import nn

try:
    from triton.language.extra import libdevice  # of no use here, and not in every version
except ImportError:
    libdevice = None


@triton.jit
def softmax_kernel(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -1.0e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        x = tl.load(x_ptr + row + start + at, mask=start + at < columns, other=-1.0e30)
        higher = tl.maximum(top, x)
        total = total * tl.exp(top - higher) + tl.exp(x - higher)
        top = higher
    best = tl.max(top, axis=0)
    scale = 1.0 / tl.sum(total * tl.exp(top - best), axis=0)
    for start in range(0, columns, BLOCK):
        inside = start + at < columns
        x = tl.load(x_ptr + row + start + at, mask=inside, other=-1.0e30)
        tl.store(out_ptr + row + start + at, tl.exp(x - best) * scale, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024, num_warps=4)
        return out
