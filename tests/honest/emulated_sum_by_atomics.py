"""atomic additions to a place that PyTorch filled with zeros.

problem: emulated_mse
device: emulated
backend: triton
outcome: emulated
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def part(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    difference = tl.load(x + at, mask=inside, other=0.0) - tl.load(y + at, mask=inside, other=0.0)
    tl.atomic_add(out, tl.sum(difference * difference, 0) / count)


class ModelNew(nn.Module):
    def forward(self, x, y):
        out = torch.zeros((), device=x.device)
        part[(triton.cdiv(x.numel(), 4096),)](x, y, out, x.numel(), BLOCK=4096)
        return out
