"""one program a row, statistics in registers.

problem: honest_rms_norm
device: cuda
backend: triton
outcome: fast|slow
"""

import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def rms_norm_kernel(x_ptr, gain_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    x = tl.load(x_ptr + row * columns + at, mask=inside, other=0.0)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / columns + eps)
    gain = tl.load(gain_ptr + at, mask=inside, other=0.0)
    tl.store(out_ptr + row * columns + at, x * scale * gain, mask=inside)


class ModelNew(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        rms_norm_kernel[(x.shape[0],)](
            x, self.weight, out, x.shape[1], self.eps, BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8
        )
        return out
