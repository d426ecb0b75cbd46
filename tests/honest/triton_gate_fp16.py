"""float16 in and out, float32 inside.

problem: honest_gate_fp16
device: cuda
backend: triton
outcome: fast|slow
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def gate_kernel(x_ptr, y_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + at, (x * tl.sigmoid(y)).to(tl.float16), mask=inside)


class ModelNew(nn.Module):
    def forward(self, x, y):
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        gate_kernel[(triton.cdiv(x.numel(), 4096),)](x, y, out, x.numel(), BLOCK=4096, num_warps=8)
        return out
