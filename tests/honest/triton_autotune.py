"""autotune over several configurations at the first call.

problem: honest_affine
device: cuda
backend: triton
outcome: fast|slow
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}, num_warps=warps) for block in (512, 1024, 4096) for warps in (4, 8)],
    key=["count"],
)
@triton.jit
def affine_kernel(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    x = tl.load(x_ptr + at, mask=inside, other=0.0)
    y = tl.load(y_ptr + at, mask=inside, other=0.0)
    value = 0.5 * x + 0.25 * y
    tl.store(out_ptr + at, tl.minimum(tl.maximum(value, -1.0), 1.0), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        affine_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel())
        return out
