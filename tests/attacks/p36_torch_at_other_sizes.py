"""P36 PyTorch at other sizes: an own kernel at the size that is timed, PyTorch's sum at all others

problem: rowsum
device: cuda
backend: triton
twin: triton_row_sum
outcome: shapes
reason: not_own
options: --shapes 2 --require-shapes
emulated: not_own|shapes
"""
# ruff: noqa: N803 - constants of Triton kernels

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
        rows, columns = x.shape
        if (rows, columns) not in ((16384, 8192), (1024, 2048)):
            return x.sum(dim=-1)
        y = torch.empty(rows, device=x.device)
        sums[(rows,)](x, y, columns, BLOCK=1024)
        return y
