"""a sum of squared differences for each block of 8192, then one of these in double precision.

problem: honest_mse
device: cuda
backend: triton
outcome: fast|slow
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def partial_sums(x, y, parts, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    place = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    difference = tl.load(x + place) - tl.load(y + place)
    tl.store(parts + block, tl.sum(difference * difference, 0))


@triton.jit
def finish(parts, out, blocks, scale, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, blocks, BLOCK):
        total += tl.load(parts + start + tl.arange(0, BLOCK)).to(tl.float64)
    tl.store(out, (tl.sum(total, 0) * scale).to(tl.float32))


class ModelNew(nn.Module):
    def forward(self, x, y):
        blocks = x.numel() // 8192
        parts = torch.empty(blocks, device=x.device)
        out = torch.empty((), device=x.device)
        partial_sums[(blocks,)](x, y, parts, BLOCK=8192, num_warps=8)
        finish[(1,)](parts, out, blocks, 1.0 / x.numel(), BLOCK=128)
        return out
