"""M06 wild pointer: a kernel keeps numbers between two tensors

problem: emulated_row_sum
device: emulated
backend: triton
outcome: out_of_bounds
reason: which is not
"""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def sums(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        total += tl.load(x + row * columns + start + tl.arange(0, BLOCK))
    tl.store(y + row - 16, tl.sum(total, 0))
    tl.store(y + row, tl.load(y + row - 16))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0], device=x.device)
        sums[(x.shape[0],)](x, out, x.shape[1], BLOCK=1024)
        return out
