"""one program a row; what the attacks on a call's clock do without the attack.

problem: rowsum
device: cuda
backend: triton
outcome: fast|slow
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
    tl.store(y + row, tl.sum(total, 0))


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device)
        sums[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
        return y
